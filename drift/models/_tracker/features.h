/* Features of dense rows, and standardised ones of sparse rows: running statistics and missing values.

   A missing value is NaN; DRIFT_ABSENT marks a name that the example lacks. */

#ifndef DRIFT_FEATURES_H
#define DRIFT_FEATURES_H

#define DRIFT_ABSENT (-INFINITY)

static inline int drift_given(double x) { return x == x && x != DRIFT_ABSENT; }

/* The rate of a mean of so many values; few divisions, as most means are of many. */
static DRIFT_INLINE double drift_rate(double n) { return n > 1.0 / DRIFT_STATISTICS_RATE ? DRIFT_STATISTICS_RATE : 1.0 / n; }

/* Update the statistics by a value. They restart where errors have long exceeded the deviation by far, or where steps between
   values have become far smaller than they were. After DRIFT_WARM_UP values outliers are clipped, so that the deviation stays
   in the range of the others; before, an outlier leads to a restart then. */
static DRIFT_INLINE void drift_feature_learn(DriftFeature *f, double x) {
    double error = x - f->mean, step = f->count > 0.0 ? x - f->last : 0.0, rate = drift_rate(f->count + 1.0);
    if (f->count >= DRIFT_WARM_UP && f->variance > 0.0 && error * error > 0.999 * DRIFT_OUTLIER * DRIFT_OUTLIER * f->variance)
        error = drift_clipped(error, DRIFT_OUTLIER * sqrt(f->variance)); /* a root takes long, and few are clipped */
    if (f->variance > 0.0) {
        double variances = error * error / f->variance;
        f->level += DRIFT_LEVEL_RATE * ((variances < DRIFT_LEVEL_MOST ? variances : DRIFT_LEVEL_MOST) - f->level);
    }
    f->steps += rate * (step * step - f->steps);
    f->recent += (rate > DRIFT_LEVEL_RATE ? rate : DRIFT_LEVEL_RATE) * (step * step - f->recent);
    f->mean += rate * error;
    f->variance = (1.0 - rate) * (f->variance + rate * error * error);
    f->count += 1.0;
    if (f->count > DRIFT_WARM_UP && (f->level > DRIFT_LEVEL_HIGH || f->recent < DRIFT_LEVEL_LOW * f->steps)) {
        f->mean = x;
        f->variance = f->level = 0.0;
        f->count = 2.0;
        f->steps = f->recent;
    }
    if (!(f->variance > 1e-24 * f->mean * f->mean)) f->variance = 0.0; /* rounding */
    if (x == 0.0) f->zero = 1.0;
    f->last = x;
    f->present += x != 0.0;
}

/* Whether an absent feature is missing rather than 0: 0 was given before, or half of the examples since the first have it and
   the standard score of 0 would be clipped. A feature that does not vary is neither. */
static DRIFT_INLINE int drift_has_gaps(const DriftFeature *f, double n) {
    double far = (1.0 - 1e-9) * DRIFT_VALUE_LIMIT * DRIFT_VALUE_LIMIT * f->variance; /* rounding does not decide ties */
    return f->variance > 0.0 && (f->zero > 0.0 || (2.0 * f->present >= n - f->since && f->mean * f->mean >= far));
}

/* Update the statistics by a value of the n-th example, and standardise it. `curve` gets NaN if the value has no point on the
   curve: it is missing, or 0 as in most examples. */
static DRIFT_INLINE double drift_feature_read(DriftFeature *f, double x, double n, double *curve) {
    double mean, deviation, z, rate = drift_rate(n);
    int gaps, rare = 0;
    *curve = NAN;
    if (drift_given(x)) {
        if (f->count == 0.0) f->since = n - 1.0;
        drift_feature_learn(f, x);
    }
    if (x == x) f->share += rate * (drift_given(x) - f->share);
    gaps = drift_has_gaps(f, n);
    if (x != x || (gaps && x == DRIFT_ABSENT)) return 0.0;
    if (gaps) {
        mean = f->mean;
        deviation = sqrt(f->variance);
    } else {
        mean = f->share * f->mean;
        deviation = sqrt(f->share * (f->variance + (1.0 - f->share) * f->mean * f->mean));
        if (x == DRIFT_ABSENT) x = 0.0;
    }
    if (x == 0.0) rare = 2.0 * mean * mean <= (1.0 + 1e-9) * deviation * deviation;
    z = deviation > 0.0 ? drift_clipped((x - mean) / deviation, DRIFT_VALUE_LIMIT) : 0.0;
    if (!rare) *curve = z;
    return z;
}

/* The same in sparse rows, where every value is given. */
static inline double drift_feature_standardise(DriftFeature *f, double x) {
    drift_feature_learn(f, x);
    double deviation = sqrt(f->variance);
    return deviation > 0.0 ? drift_clipped((x - f->mean) / deviation, DRIFT_VALUE_LIMIT) : 0.0;
}

/* Deviations of an example's values from the means of earlier ones, in the precision of tickets; NaN without either. */
static void drift_context_deviations(DriftTracker *t) {
    for (int j = 0; j < t->n_context / DRIFT_CONTEXT_INPUTS; j++)
        for (int h = DRIFT_N_HORIZONS * j; h < DRIFT_N_HORIZONS * (j + 1); h++) {
            const double *mean = t->means + 2 * h;
            t->raw_deviations[h] = drift_given(t->raw[j]) && mean[1] > 0.0 ? drift_float(t->raw[j] - mean[0] / mean[1]) : NAN;
        }
}

/* Read the values for the trees: an absent name is 0, or missing as `drift_has_gaps` says. */
static void drift_read_tree_row(DriftTracker *t, int d, double n) {
    for (int j = 0; j < d && j < t->columns; j++) {
        double x = t->raw[j];
        if (x == DRIFT_ABSENT) x = drift_has_gaps(&t->features[j], n) ? NAN : 0.0;
        t->tree_row[j] = (float)drift_clipped(x, DRIFT_COLUMN_LIMIT);
    }
}

/* The same with the deviations from the running means, which the point has. */
static void drift_read_context_tree_row(DriftTracker *t) {
    for (int j = 0; j < t->n_context / DRIFT_CONTEXT_INPUTS && t->forests; j++) {
        float *row = t->context_tree_row + DRIFT_CONTEXT_INPUTS * j;
        row[0] = t->tree_row[j];
        for (int h = 0; h < DRIFT_N_HORIZONS; h++) row[1 + h] = (float)drift_clipped(t->raw_deviations[DRIFT_N_HORIZONS * j + h], DRIFT_COLUMN_LIMIT);
    }
}

/* Update the running means of the features from `first` up to `last`. */
static void drift_means_learn(DriftTracker *t, int first, int last) {
    for (int j = first; j < last && j < t->n_context / DRIFT_CONTEXT_INPUTS; j++)
        for (int h = 0; h < DRIFT_N_HORIZONS && drift_given(t->raw[j]); h++) {
            double *mean = t->means + 2 * (DRIFT_N_HORIZONS * j + h);
            mean[0] += (t->raw[j] - mean[0]) / DRIFT_HORIZONS[h];
            mean[1] += (1.0 - mean[1]) / DRIFT_HORIZONS[h];
        }
}

/* Standardise the deviations of the n-th example; return the sum of squares of these and of its values. `read_deviations` gets
   the statistics after it. */
static double drift_context_read(DriftTracker *t, double n) {
    double sum = 0.0;
    for (int j = 0; j < t->n_context / DRIFT_CONTEXT_INPUTS; j++) {
        double *z = t->context_standardised + DRIFT_CONTEXT_INPUTS * j, *curves = t->context_curves + DRIFT_CONTEXT_INPUTS * j;
        z[0] = t->standardised[j], curves[0] = t->curves[j];
        for (int h = 0; h < DRIFT_N_HORIZONS; h++) {
            DriftFeature feature = t->deviation_statistics[DRIFT_N_HORIZONS * j + h];
            z[1 + h] = drift_feature_read(&feature, t->raw_deviations[DRIFT_N_HORIZONS * j + h], n, curves + 1 + h);
            t->read_deviations[DRIFT_N_HORIZONS * j + h] = feature;
        }
        for (int k = 0; k < DRIFT_CONTEXT_INPUTS; k++) sum += z[k] * z[k];
    }
    return sum;
}

/* Standardise the values of `d` features; return the sum of squares. `after` gets the statistics after them. */
DRIFT_CLONES static double drift_features_read(DriftFeature *after, const DriftFeature *features, const double *x, double *z, double *curves, int d, double n) {
    double sum = 0.0;
    for (int j = 0; j < d; j++) {
        DriftFeature feature = features[j];
        z[j] = drift_feature_read(&feature, x[j], n, curves + j);
        sum += z[j] * z[j];
        after[j] = feature;
    }
    return sum;
}

/* Keep the statistics after the example that was read. */
static void drift_features_learn(DriftTracker *t, int d) {
    memcpy(t->features, t->read_features, (size_t)d * sizeof *t->features);
    memcpy(t->deviation_statistics, t->read_deviations, (size_t)(t->n_context / DRIFT_CONTEXT_INPUTS * DRIFT_N_HORIZONS) * sizeof *t->deviation_statistics);
}

#endif
