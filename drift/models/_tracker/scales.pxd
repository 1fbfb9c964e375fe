from libc.stdint cimport int32_t, int64_t, uint64_t

from drift.models._tracker.state cimport DriftTracker, State


cdef extern from "core.h":
    ctypedef struct DriftVocabulary:
        void *entries
        size_t mask


cdef class Scale:
    cdef State state
    cdef readonly list names, new_names
    cdef list next_names  # after the example
    cdef bint current
    cdef int read(self, x, features, rows, int i) except -1
    cdef uint64_t key(self) except? 0
    cdef void update_context(self) noexcept
    cdef void use_context(self, const float *back, int n) noexcept
    cdef bint read_values(self, dict features, rows, int i) except -1
    cdef int make_point(self) except -1
    cdef int add_names(self) except -1
    cdef void drop_names(self) noexcept
    cdef void learn(self, bint context_updated) noexcept


cdef class Dense(Scale):
    cdef DriftVocabulary vocabulary
    cdef readonly object pairs
    cdef object next_pairs
    cdef dict new_values, last_new_values  # values of new names, of this example and of the last one
    # Nonzero values of the example; names that had one before; names that get their first.
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
    cdef int common_index(self, int32_t number) noexcept
