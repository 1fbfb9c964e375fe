# Declarations of the store's C types and functions.
#
# Headers with code by precision are included twice, with REAL float and double. Such a function has two names,
# `f_float` and `f_double`; a macro `f(wide, ...)` below calls the right one. So a new one needs a macro and a
# declaration here, any other C function a declaration alone.

cdef extern from *:
    """
    #include "sort.h"
    #include "vocabulary.h"
    #define REAL float
    #include "columns.h"
    #include "scores.h"
    #include "window.h"
    #undef REAL
    #define REAL double
    #include "columns.h"
    #include "scores.h"
    #include "window.h"
    #undef REAL
    #define DRIFT_EITHER(name, wide, ...) ((wide) ? name##_double(__VA_ARGS__) : name##_float(__VA_ARGS__))
    #define drift_dots(wide, ...) DRIFT_EITHER(drift_dots, wide, __VA_ARGS__)
    #define drift_score(wide, ...) DRIFT_EITHER(drift_score, wide, __VA_ARGS__)
    #define drift_inner_products(wide, ...) DRIFT_EITHER(drift_inner_products, wide, __VA_ARGS__)
    #define drift_put(wide, ...) DRIFT_EITHER(drift_put, wide, __VA_ARGS__)
    #define drift_get(wide, ...) DRIFT_EITHER(drift_get, wide, __VA_ARGS__)
    #define drift_drop(wide, ...) DRIFT_EITHER(drift_drop, wide, __VA_ARGS__)
    #define drift_make_dense(wide, ...) DRIFT_EITHER(drift_make_dense, wide, __VA_ARGS__)
    #define drift_make_sparse(wide, ...) DRIFT_EITHER(drift_make_sparse, wide, __VA_ARGS__)
    #define drift_grow_dense(wide, ...) DRIFT_EITHER(drift_grow_dense, wide, __VA_ARGS__)
    #define drift_window_size(wide) DRIFT_EITHER(drift_window_size, wide)
    #define drift_record_row(wide, ...) DRIFT_EITHER(drift_record_row, wide, __VA_ARGS__)
    #define drift_is_recorded(wide, ...) DRIFT_EITHER(drift_is_recorded, wide, __VA_ARGS__)
    #define drift_sum_rows(wide, ...) DRIFT_EITHER(drift_sum_rows, wide, __VA_ARGS__)
    #define drift_sum_block(wide, ...) DRIFT_EITHER(drift_sum_block, wide, __VA_ARGS__)
    """
    ctypedef struct DriftColumn:
        void *block
        int32_t size
        int32_t room
    void *drift_grow(void *, size_t, size_t) nogil
    void drift_free(void *) nogil
    bint drift_is_dense(const DriftColumn *) nogil
    void drift_clear(DriftColumn *) nogil
    ctypedef struct DriftEntry:
        pass
    ctypedef struct DriftVocabulary:
        void *entries
        size_t mask
        size_t size
    bint drift_is_plain(PyObject *, PyObject *) nogil
    bint drift_is_number(PyObject *, double) nogil
    int drift_same(PyObject *, PyObject *) except -1
    Py_hash_t drift_hash(PyObject *) except -1
    double drift_number(PyObject *) except? -1.0
    void drift_vocabulary_prefetch(const DriftVocabulary *, Py_hash_t) nogil
    int32_t drift_vocabulary_find(const DriftVocabulary *, PyObject *, Py_hash_t, PyObject **, bint) except -2
    enum: DRIFT_ASK
    int drift_vocabulary_enter(DriftVocabulary *, PyObject *, Py_hash_t, int32_t) nogil
    uint32_t drift_fold(Py_hash_t) nogil
    void drift_vocabulary_leave(DriftVocabulary *, PyObject *, uint32_t) nogil
    void drift_vocabulary_drop(DriftVocabulary *, PyObject *) nogil
    enum: DRIFT_LINEAR, DRIFT_POLYNOMIAL, DRIFT_RBF, DRIFT_CUSTOM, DRIFT_LANES, DRIFT_DENSE, DRIFT_SPARSE, DRIFT_AHEAD
    enum: DRIFT_WINDOW, DRIFT_WINDOW_BYTES, DRIFT_CHANGES
    void DRIFT_PREFETCH(void *) nogil
    void drift_prefetch_head(const DriftColumn *) nogil
    void drift_prefetch_rest(const DriftColumn *) nogil
    double drift_score_of_kernels(const double *, const double *, int, double, double *) nogil
    double drift_power(double, int) nogil
    void drift_ratios(double *, const double *, int) nogil
    void drift_polynomial(double *, const double *, double, int, int) nogil
    void drift_rbf_float(double *, const double *, double, double, int) nogil
    void drift_rbf_double(double *, const double *, double, double, int) nogil
    void drift_sort(uint64_t *, uint64_t *, int, uint32_t) nogil
    void drift_dots(bint, DriftColumn *, const int32_t *, const double *, int, void *, int, const void *) nogil
    double drift_score(
        bint, const double *, const void *, const double *, double, const double *, double, int, int, double, double *
    ) nogil
    void drift_inner_products(bint, double *, const void *, const double *, double, int) nogil
    int drift_put(bint, DriftColumn *, int, double, int, int) nogil
    double drift_get(bint, DriftColumn *, int) nogil
    void drift_drop(bint, DriftColumn *, int, int) nogil
    int drift_make_dense(bint, DriftColumn *, int) nogil
    int drift_make_sparse(bint, DriftColumn *, int) nogil
    int drift_grow_dense(bint, DriftColumn *, int, int) nogil
    size_t drift_window_size(bint) nogil
    void drift_record_row(bint, void *, int, const DriftColumn *, const int32_t *, const double *, int) nogil
    bint drift_is_recorded(bint, const void *, int, const DriftColumn *, const int32_t *, const double *, int) nogil
    void drift_sum_rows(bint, void *, void *, int, int) nogil
    void drift_sum_block(bint, const void *, void *, int, int, int) nogil
