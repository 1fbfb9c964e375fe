# What the core calls of C.

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
    ctypedef struct DriftWindow:
        int first, n
    ctypedef struct DriftForest:
        uint64_t draws, kept, renew, renewing, since, n_trees, next
    ctypedef struct DriftTracker:
        DriftFeature *features
        DriftFeature *read_features
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
        DriftForest *tree_forest
        DriftForest *context_tree_forest
        int cells, classes, context, forests, window, hashed, inputs, kernel_members, kernels, knots, members, names, rows, slots, trees
        DriftSupports supports
        DriftHats hats, context_hats
        int n_values, n_cells, n_context, sparse, n_classes, n_rows, n_used, inserted, evicted, nearest, prediction
        double squared_norm
        uint64_t draws
        DriftWindow tree_window, context_tree_window
        int has_trees, largest_window

    ctypedef struct DriftVocabulary:
        void *entries
        size_t mask

    enum: DRIFT_N_ARRAYS, DRIFT_N_DIMENSIONS, DRIFT_ASK, DRIFT_DENSE_NAMES, DRIFT_HASH_SLOTS, DRIFT_NUMBER_BITS
    enum: DRIFT_CONTEXT, DRIFT_CONTEXT_INPUTS, DRIFT_N_HORIZONS, DRIFT_NO_SCORES, DRIFT_CURRENT_SCORES, DRIFT_TICKET_SCORES
    enum: DRIFT_N_GATE_WALKS, DRIFT_N_MAPS, DRIFT_FEW_NAMES, DRIFT_MANY_NAMES, DRIFT_FEW_EXAMPLES
    double DRIFT_ABSENT, DRIFT_SPARSE_SHARE, DRIFT_SPARSE_VALUES, DRIFT_COMMON_SHARE
    void drift_supports_clear(DriftSupports *) nogil
    int drift_supports_reserve(DriftSupports *, int) nogil
    int drift_supports_add(DriftSupports *, int, const int32_t *, const double *, int) nogil
    void drift_supports_read(DriftSupports *, int, int32_t *, double *) nogil
    size_t drift_supports_bytes(const DriftSupports *) nogil
    bint drift_is_plain(PyObject *, PyObject *) nogil
    bint drift_is_plain_name(PyObject *) nogil
    Py_hash_t drift_hash(PyObject *) except -1
    double drift_number(PyObject *) except? -1.0
    int32_t drift_vocabulary_find(const DriftVocabulary *, PyObject *, Py_hash_t, PyObject **, bint) except -2
    int drift_vocabulary_enter(DriftVocabulary *, PyObject *, Py_hash_t, int32_t) nogil
    void drift_vocabulary_drop(DriftVocabulary *, PyObject *) nogil
    uint64_t drift_mix(uint64_t) nogil
    float drift_float(double) nogil
    uint64_t drift_number_of(uint64_t) nogil
    uint64_t drift_hash_bytes(const char *, size_t) nogil
    const uint64_t drift_step
    void drift_sort_numbers(uint64_t *, uint64_t *, int) nogil
    void drift_hats(DriftHats *, int32_t *, float *, const double *, int) nogil
    double drift_features_read(DriftFeature *, const DriftFeature *, const double *, double *, double *, int, double) nogil
    void drift_features_learn(DriftTracker *, int) nogil
    void drift_context_deviations(DriftTracker *) nogil
    void drift_read_tree_row(DriftTracker *, int, double) nogil
    void drift_read_context_tree_row(DriftTracker *) nogil
    void drift_compact(DriftTracker *) nogil
    void drift_means_learn(DriftTracker *, int, int) nogil
    uint64_t drift_key_part(uint64_t, double) nogil
    double drift_context_read(DriftTracker *, double) nogil
    double drift_feature_standardise(DriftFeature *, double) nogil
    void drift_predict(DriftTracker *) nogil
    double drift_probability(const DriftTracker *, int) nogil
    double drift_loss(const DriftTracker *, int) nogil
    bint drift_inserts(const DriftTracker *, double) nogil
    uint64_t drift_choose_evicted(DriftTracker *, int, int32_t *, double *) nogil
    void drift_learn(DriftTracker *, int, double, int) nogil
    void drift_read_ticket(DriftTracker *, const float *, int) nogil
    int drift_rows_of(int) nogil

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    PyObject *Py_None
