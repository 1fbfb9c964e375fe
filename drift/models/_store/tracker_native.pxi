# What the tracker takes from C.

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL

cdef extern from *:
    """
    #include "late.h"
    #include "scaling.h"
    #include "experts.h"
    #include "linear.h"
    #define FEW_NAMES 256
    #define FEW_EXAMPLES 8
    #define DENSE_NAMES 4096
    #define MANY_NAMES 1024
    #define SPARSE_SHARE 0.25
    #define SPARSE_VALUES 3.0
    #define COMMON_SHARE 0.5
    #define RATE 1e-3
    #define LEAST 1e-9
    """
    enum: FEW_NAMES, FEW_EXAMPLES, MANY_NAMES, DENSE_NAMES
    double SPARSE_SHARE, SPARSE_VALUES, COMMON_SHARE, RATE, LEAST
    enum: DRIFT_GATES, DRIFT_LINEARS, DRIFT_SPLINES, DRIFT_CELL_SIZE, DRIFT_SLOTS, DRIFT_KNOTS, DRIFT_PAIRED, DRIFT_DRAWS, DRIFT_MAPS
    double DRIFT_TIE
    const uint64_t drift_step
    const double drift_descent[2][2]
    const double drift_bias[2]
    const double DRIFT_PATIENCE, DRIFT_PATIENCE_BY_WEIGHT
    void drift_take_over(float *cells, size_t n, int to, int origin)
    ctypedef struct DriftHats:
        pass
    ctypedef struct DriftMixture:
        int members, scored, rows, known, vote, prediction
        double share, total, log_loss, mistakes, mean_loss, mean_of
        double *weights
        double *majority
        double *errors
        double *losses
        double *path
        double *switches
        double *gates
        double *covariance
        double *trust
        double *maps
        int64_t n_learnt
        double *late
        double *score
        double *softmax
        double *p
        double *next
        double *mixed
        double *margin
        double *gain
        int *choice
    int drift_classes(const DriftMixture *) nogil
    void drift_softmax(double *, const double *, int, int) nogil
    void drift_say(DriftMixture *) nogil
    void drift_chances(DriftMixture *) nogil
    void drift_decide_late(DriftMixture *) nogil
    void drift_weigh_late(DriftMixture *, DriftMixture *, int, double) nogil
    double drift_loss(const DriftMixture *, int) nogil
    bint drift_inserts(const DriftMixture *, double) nogil
    void drift_next_weights(DriftMixture *, int, double) nogil
    double drift_gradient(const DriftMixture *, int, int, int) nogil
    void drift_weigh(DriftMixture *, int, double, double) nogil
    uint64_t drift_mix(uint64_t) nogil
    uint64_t drift_hash_bytes(const char *, size_t) nogil
    int drift_draw(uint64_t *, int) nogil
    double drift_standardise(const double *, const double *, const double *, double *, double *, double *, double, int) nogil
    void drift_distances(float *, float *, const double *, const double *, double, int) nogil
    void drift_all_distances(double *, const double *, const double *, double, int) nogil
    float drift_flushed(double) nogil
    void drift_gaussians(float *, const float *, float, int) nogil
    void drift_eighths(float *, const float *, int) nogil
    void drift_expert_sums(double *, const float *, const float *, int, size_t, int) nogil
    void drift_costs(double *, const float *, size_t, const int32_t *, const double *, const double *, int, const double *, int, const double *, const double *, double, int, bint) nogil
    void drift_project(double, const double[3][3], double *) nogil
    double drift_rounded(double) nogil
    void drift_linear_sums(double *, const float *, const int32_t *, const float *, int) nogil
    void drift_linear_steps(float *, const int32_t *, const float *, int, float, float, float, float, double, double) nogil
    int drift_n_knots(int, bint) nogil
    void drift_hats(
        DriftHats *, const double *, const double *, const double *, const double *, int, int, bint
    ) nogil
    void drift_spline_sums(double *, const float *, const DriftHats *) nogil
    void drift_spline_steps(float *, float *, const DriftHats *, const double *, const double *) nogil
