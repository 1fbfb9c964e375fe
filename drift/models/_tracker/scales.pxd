from libc.stdint cimport int32_t, int64_t, uint64_t

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
    cdef uint64_t content(self) except? 0
    cdef void note(self) noexcept
    cdef void look_back(self, const float *back, int n) noexcept
    cdef bint read(self, dict features, rows, int i) except -1
    cdef int make_point(self) except -1
    cdef int enter(self) except -1
    cdef void leave(self) noexcept
    cdef void learn(self, bint noted) noexcept


cdef class Dense(Scale):
    cdef DriftVocabulary vocabulary
    cdef readonly object pairs
    cdef object next_pairs
    cdef dict unknown, last_unknown  # values by new names, of the example read last and of the one before
    # Values of the example that are not 0, names that had one before, and those that it adds.
    cdef int n_present, n_active, n_new
    cdef int reserve(self, int n) except -1
    cdef int reserve_knots(self) except -1
    cdef int make_context(self, int d) noexcept
    cdef int read_context(self) noexcept
    cdef int read_any(self, dict features) except -1
    cdef bint end_read(self, dict features) except -1


cdef class Sparse(Scale):
    cdef readonly int common
    cdef int n_read, n_last
    cdef int reserve(self, int n) except -1
    cdef int read_any(self, dict features) except -1
    cdef bint end_read(self, int n, dict features) except -1
    cdef int place_of(self, int32_t number) noexcept
