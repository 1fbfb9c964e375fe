# What the store takes from C.

cdef extern from *:
    """
    #define WINDOW 64 /* rows of one, at most */
    #define LARGEST_WINDOW (1 << 23) /* bytes */
    #define LEAST_SLOTS 512
    #define LEAST_DENSE (1 << 21) /* bytes of a row's dense columns: fewer the second-level cache keeps */
    #define REAL float
    #include "columns.h"
    #include "vocabulary.h"
    #undef REAL
    #define REAL double
    #include "columns.h"
    #undef REAL
    #include "ahead.h"
    """
    ctypedef struct DriftColumn:
        void *block
        int32_t size
        int32_t room
    void *drift_grow(void *, size_t, size_t) nogil
    void drift_free(void *) nogil
    bint drift_is_dense(const DriftColumn *) nogil
    void drift_clear(DriftColumn *) nogil
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
    int32_t drift_vocabulary_find(const DriftVocabulary *, PyObject *, Py_hash_t, PyObject **) except -2
    int drift_vocabulary_enter(DriftVocabulary *, PyObject *, Py_hash_t, int32_t) nogil
    uint32_t drift_fold(Py_hash_t) nogil
    void drift_vocabulary_leave(DriftVocabulary *, PyObject *, uint32_t) nogil
    void drift_vocabulary_drop(DriftVocabulary *, PyObject *) nogil
    enum: DRIFT_LINEAR, DRIFT_POLYNOMIAL, DRIFT_RBF, DRIFT_CUSTOM, DRIFT_LANES, DRIFT_CHUNK
    enum: WINDOW, LARGEST_WINDOW, LEAST_SLOTS, LEAST_DENSE
    void DRIFT_PREFETCH(void *) nogil
    void drift_prefetch_head(const DriftColumn *) nogil
    void drift_prefetch_rest(const DriftColumn *) nogil
    double drift_weighted_sum(const double *, const double *, int, double, double *) nogil
    double drift_power(double, int) nogil
    void drift_polynomial(double *, const double *, double, int, int) nogil
    void drift_rbf(double *, const double *, double, double, int) nogil
    void drift_rbf_exact(double *, const double *, double, double, int) nogil
    void drift_sort(uint64_t *, uint64_t *, int, uint32_t) nogil
    void drift_dots_float(DriftColumn *, const int32_t *, const double *, int, void *, int, const void *, const int32_t *, int) nogil
    void drift_dots_double(DriftColumn *, const int32_t *, const double *, int, void *, int, const void *, const int32_t *, int) nogil
    int drift_take_dense_float(const DriftColumn *, const int32_t *, const double *, int, const void **, void *) nogil
    int drift_take_dense_double(const DriftColumn *, const int32_t *, const double *, int, const void **, void *) nogil
    void drift_add_windows_float(void *, int, const void **, void *, const int *, const int *, int, int) nogil
    void drift_add_windows_double(void *, int, const void **, void *, const int *, const int *, int, int) nogil
    double drift_score_float(const double *, const float *, const double *, double, const double *, double, int, int, double, double *) nogil
    double drift_score_double(const double *, const double *, const double *, double, const double *, double, int, int, double, double *) nogil
    double drift_slope(const double *, const float *, const double *, double, const double *, double, int, int, double) nogil
    void drift_spread(const DriftColumn *, float *, int) nogil
    void drift_widen_float(double *, const float *, const double *, double, int) nogil
    void drift_widen_double(double *, const double *, const double *, double, int) nogil
    int drift_put_float(DriftColumn *, int, double, int) nogil
    int drift_put_double(DriftColumn *, int, double, int) nogil
    double drift_get_float(DriftColumn *, int) nogil
    double drift_get_double(DriftColumn *, int) nogil
    void drift_drop_float(DriftColumn *, int, int) nogil
    void drift_drop_double(DriftColumn *, int, int) nogil
    int drift_make_dense_float(DriftColumn *, int) nogil
    int drift_make_dense_double(DriftColumn *, int) nogil
    int drift_make_sparse_float(DriftColumn *, int) nogil
    int drift_make_sparse_double(DriftColumn *, int) nogil
    int drift_widen_dense_float(DriftColumn *, int, int) nogil
    int drift_widen_dense_double(DriftColumn *, int, int) nogil
    enum: DRIFT_TILE, DRIFT_AT_ONCE
    void drift_tile_dots(float *, const float *, const int32_t *, const float *, int) nogil
    void drift_into_tiles_float(DriftColumn *, float *, size_t, int) nogil
    void drift_into_tiles_double(DriftColumn *, float *, size_t, int) nogil
    void drift_rough_polynomial(double *, double *, const float *, const double *, double, const double *, double, int, int, double, double) nogil
    void drift_rough_rbf(double *, double *, const double *, double, int, double, double, double) nogil
    void drift_rough_score(const double *, const double *, const double *, int, double *, double *) nogil
