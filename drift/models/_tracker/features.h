/* Features of dense rows, and those of sparse ones that are standardised: running statistics, and what is missing.

   A value that an example does not give is NaN where it gave NaN, and DRIFT_ABSENT where it has no such name. */

#ifndef DRIFT_FEATURES_H
#define DRIFT_FEATURES_H

#define DRIFT_ABSENT (-INFINITY)

static inline int drift_given(double x) { return x == x && x != DRIFT_ABSENT; }

/* Take a value in. Its statistics restart where errors have been far larger than the deviation for a while, or steps from
   value to value far smaller than they used to be. After DRIFT_EARLY values one far off counts as less, so that it does not
   leave the others without a difference; before, it makes all begin anew then. */
static DRIFT_INLINE void drift_feature_learn(DriftFeature *f, double x) {
    double error = x - f->mean, step = f->count > 0.0 ? x - f->last : 0.0, rate = 1.0 / (f->count + 1.0);
    if (rate < DRIFT_RATE) rate = DRIFT_RATE;
    if (f->count >= DRIFT_EARLY && f->variance > 0.0) error = drift_clipped(error, DRIFT_FAR * sqrt(f->variance));
    if (f->variance > 0.0) f->level = (1.0 - DRIFT_LEVEL_RATE) * f->level + DRIFT_LEVEL_RATE * (error * error / f->variance);
    f->steps += rate * (step * step - f->steps);
    f->recent += (rate > DRIFT_LEVEL_RATE ? rate : DRIFT_LEVEL_RATE) * (step * step - f->recent);
    f->mean += rate * error;
    f->variance = (1.0 - rate) * (f->variance + rate * error * error);
    f->count += 1.0;
    if (f->count > DRIFT_EARLY && (f->level > DRIFT_LEVEL_HIGH || f->recent < DRIFT_LEVEL_LOW * f->steps)) {
        f->mean = x;
        f->variance = f->level = 0.0;
        f->count = 2.0;
        f->steps = f->recent;
    }
    if (!(f->variance > 1e-24 * f->mean * f->mean)) f->variance = 0.0; /* what is left is rounding */
    if (x == 0.0) f->zero = 1.0;
    f->last = x;
    f->present += x != 0.0;
}

/* Whether an absent feature is missing rather than 0: it was given as 0 before, or half of the examples since the first
   have it and 0, standardised, would be clipped. One that does not vary is neither. */
static DRIFT_INLINE int drift_has_gaps(const DriftFeature *f, double n) {
    double far = (1.0 - 1e-9) * DRIFT_CLIPPED * DRIFT_CLIPPED * f->variance; /* so that no tie hangs on rounding */
    return f->variance > 0.0 && (f->zero > 0.0 || (2.0 * f->present >= n - f->since && f->mean * f->mean >= far));
}

/* Take an example's value in, the n-th, and standardise it. NaN in `curve` where there is nothing to look up in a curve: the
   value is missing, or 0 as in most examples. */
static DRIFT_INLINE double drift_feature_read(DriftFeature *f, double x, double n, double *curve) {
    double mean, deviation, z, rate = 1.0 / n > DRIFT_RATE ? 1.0 / n : DRIFT_RATE;
    int gaps, rare = 0;
    *curve = NAN;
    if (drift_given(x)) {
        if (f->count == 0.0) f->since = n - 1.0;
        drift_feature_learn(f, x);
    }
    if (x == x) f->share += rate * (drift_given(x) - f->share);
    gaps = drift_has_gaps(f, n);
    if (x != x || (gaps && x == DRIFT_ABSENT)) return 0.0;
    mean = f->mean, deviation = sqrt(f->variance);
    if (!gaps) {
        mean = f->share * f->mean;
        deviation = sqrt(f->share * (f->variance + (1.0 - f->share) * f->mean * f->mean));
        if (x == DRIFT_ABSENT) x = 0.0;
    }
    if (x == 0.0) rare = 2.0 * mean * mean <= (1.0 + 1e-9) * deviation * deviation;
    z = deviation > 0.0 ? drift_clipped((x - mean) / deviation, DRIFT_CLIPPED) : 0.0;
    if (!rare) *curve = z;
    return z;
}

/* The same of a feature of sparse rows, where it is given alone. */
static inline double drift_feature_standardise(DriftFeature *f, double x) {
    drift_feature_learn(f, x);
    double deviation = sqrt(f->variance);
    return deviation > 0.0 ? drift_clipped((x - f->mean) / deviation, DRIFT_CLIPPED) : 0.0;
}

/* Deviations of an example's values from the means of those before it, as tickets keep them; NaN without a value, or one before. */
static void drift_look_back(DriftTracker *t) {
    for (int j = 0; j < t->n_context / DRIFT_BESIDE; j++)
        for (int h = DRIFT_N_HORIZONS * j; h < DRIFT_N_HORIZONS * (j + 1); h++) {
            const double *mean = t->means + 2 * h;
            t->back[h] = drift_given(t->raw[j]) && mean[1] > 0.0 ? (float)(t->raw[j] - mean[0] / mean[1]) : NAN;
        }
}

/* Take an example's values into the running means, those of features from `first` up to `last`. */
static void drift_means_learn(DriftTracker *t, int first, int last) {
    for (int j = first; j < last && j < t->n_context / DRIFT_BESIDE; j++)
        for (int h = 0; h < DRIFT_N_HORIZONS && drift_given(t->raw[j]); h++) {
            double *mean = t->means + 2 * (DRIFT_N_HORIZONS * j + h);
            mean[0] += (t->raw[j] - mean[0]) / DRIFT_HORIZONS[h];
            mean[1] += (1.0 - mean[1]) / DRIFT_HORIZONS[h];
        }
}

/* Standardise the deviations of the n-th example, beside its values; return the sum of squares of both. */
static double drift_context_read(DriftTracker *t, double n, int learn) {
    double sum = 0.0;
    for (int j = 0; j < t->n_context / DRIFT_BESIDE; j++) {
        double *z = t->beside + DRIFT_BESIDE * j, *curves = t->context_curves + DRIFT_BESIDE * j;
        z[0] = t->standardised[j], curves[0] = t->curves[j];
        for (int h = 0; h < DRIFT_N_HORIZONS; h++) {
            DriftFeature feature = t->deviations[DRIFT_N_HORIZONS * j + h];
            z[1 + h] = drift_feature_read(&feature, t->back[DRIFT_N_HORIZONS * j + h], n, curves + 1 + h);
            if (learn) t->deviations[DRIFT_N_HORIZONS * j + h] = feature;
        }
        for (int k = 0; k < DRIFT_BESIDE; k++) sum += z[k] * z[k];
    }
    return sum;
}

/* Standardise the values of `d` features; return the sum of squares. With `learn` the statistics are kept. */
DRIFT_CLONES static double drift_features_read(DriftFeature *features, const double *x, double *z, double *curves, int d, double n, int learn) {
    double sum = 0.0;
    for (int j = 0; j < d; j++) {
        DriftFeature feature = features[j];
        z[j] = drift_feature_read(&feature, x[j], n, curves + j);
        sum += z[j] * z[j];
        if (learn) features[j] = feature;
    }
    return sum;
}

#endif
