from libc.stdint cimport int32_t, uint64_t


cdef extern from "core.h":
    ctypedef struct DriftFeature:
        double mean, variance, count, share, level, last, steps, recent, present, since, zero
    ctypedef struct DriftSums:
        double total, mean_loss, mean_weight, squares, learnt, examples, values, context_squares
    ctypedef struct DriftSupports:
        int32_t *sizes
        int capacity
    ctypedef struct DriftHats:
        pass
    ctypedef struct DriftTracker:
        DriftFeature *features
        DriftSums *sums
        int32_t *common
        double *raw
        double *last_raw
        double *standardised
        double *curves
        double *values
        int32_t *numbers
        int32_t *last_numbers
        int32_t *raw_numbers
        int32_t *input_cells
        float *cell_values
        uint64_t *keys
        uint64_t *spare_keys
        double *squared
        double *probabilities
        double *scores
        double *raw_deviations
        uint64_t *hashes
        double *context_standardised
        double *context_curves
        float *context_values
        int32_t *hat_knots
        float *hat_heights
        int32_t *context_hat_knots
        float *context_hat_heights
        double *widths
        double *rates
        double *retention
        double *walks
        double *gates
        double *covariances
        double *maps
        double *errors
        double *losses
        int cells, classes, context, hashed, inputs, kernel_members, kernels, knots, members, names, rows, slots
        DriftSupports supports
        DriftHats hats, context_hats
        int n_values, n_cells, n_context, sparse, n_classes, n_rows, n_used, inserted, evicted, nearest, prediction
        double squared_norm
        uint64_t draws


cdef void *address(array) except NULL


cdef class State:
    cdef DriftTracker t
    cdef list blocks
    cdef void **pointers(self) noexcept
    cdef int *room(self) noexcept
    cpdef int reserve(self, dict room) except -1
    cdef size_t size(self)
    cdef int reserve_slots(self, int n) except -1
    cdef int exchange(self, layout, dict groups, bint inward) except -1
    cdef int n_values(self) noexcept
    cdef int read_supports(self, list supports) except -1
