from libc.stdint cimport int32_t, int64_t

from drift.models._tracker.state cimport DriftTracker, State


cdef extern from "core.h":
    ctypedef struct DriftVocabulary:
        void *entries
        size_t mask


cdef class Scale:
    cdef State state
    cdef readonly list names, fresh
    cdef list next_names  # once the example is learnt
    cdef bint current
    cdef int take(self, x, features, rows, int i) except -1
    cdef bint read(self, dict features, rows, int i) except -1
    cdef int make_point(self) except -1
    cdef int enter(self) except -1
    cdef void leave(self) noexcept
    cdef void learn(self) noexcept


cdef class Dense(Scale):
    cdef DriftVocabulary vocabulary
    cdef readonly object pairs
    cdef object next_pairs
    cdef dict unknown
    cdef bint brought  # new names by the example read last
    # Values of the example that are not 0, names that had one before, and those that it adds.
    cdef int n_present, n_active, n_new
    cdef int reserve(self, int n) except -1
    cdef int reserve_knots(self) except -1
    cdef int make_context(self, int d) noexcept
    cdef int read_any(self, dict features) except -1
    cdef bint end_read(self, dict features) except -1


cdef class Sparse(Scale):
    cdef readonly int common
    cdef int n_read, n_last
    cdef int reserve(self, int n) except -1
    cdef int read_any(self, dict features) except -1
    cdef bint end_read(self, int n, dict features) except -1
    cdef int place_of(self, int32_t number) noexcept
