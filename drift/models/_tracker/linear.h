/* Linear experts: over the features, two by gradient descent, one by AdaGrad, one by a diagonal Kalman filter; over features
   beside their context, the last two.

   A cell, one for the bias and for each feature, has the weights of each expert, AdaGrad's sum of squares, and by how much the
   filter's variance is below the prior. */

#ifndef DRIFT_LINEAR_H
#define DRIFT_LINEAR_H

/* The weights of all rows, experts by gradient descent in each cell, and an example's inputs. */
typedef struct {
    float *weights;
    int cells, descents;
    const float *inputs;
    int n;
} DriftLinear;

static inline DriftLinear drift_linear_of(const DriftTracker *t) {
    return (DriftLinear){t->linear, t->cells, DRIFT_COUNT_linear - 2, t->cell_values, t->n_cells};
}
static inline DriftLinear drift_context_linear_of(const DriftTracker *t) {
    return (DriftLinear){t->context_linear, t->context_cells, DRIFT_COUNT_context_linear - 2, t->context_values, t->n_context};
}

static inline float *drift_linear_row(DriftLinear own, int row) {
    return own.weights + (size_t)row * own.cells * (own.descents + 4);
}
static void drift_part_linear(DriftLinear own) {
    drift_part(own.weights, (size_t)own.cells * (own.descents + 4), own.descents + 4, own.descents + 2);
}
static void drift_linear_part(DriftTracker *t) { drift_part_linear(drift_linear_of(t)); }
static void drift_context_linear_part(DriftTracker *t) { drift_part_linear(drift_context_linear_of(t)); }

static DRIFT_INLINE void drift_linear_sums_of(double *__restrict out, const float *__restrict weights, const int32_t *__restrict cells,
                                              const float *__restrict inputs, int n, const int descents) {
    double sum[DRIFT_COUNT_linear];
    for (int c = 0; c < descents + 2; c++) sum[c] = (double)weights[c];
    for (int i = 0; i < n; i++) {
        const float *__restrict cell = weights + (descents + 4) * (1 + (size_t)cells[i]);
        for (int c = 0; c < descents + 2; c++) sum[c] += (double)cell[c] * (double)inputs[i];
    }
    for (int c = 0; c < descents + 2; c++) out[c] = sum[c];
}

/* The same, compiled for either number of experts by gradient descent. */
DRIFT_CLONES static void drift_linear_sums(double *__restrict out, const float *__restrict weights, const int32_t *__restrict cells,
                                          const float *__restrict inputs, int n, int descents) {
    if (descents)
        drift_linear_sums_of(out, weights, cells, inputs, n, DRIFT_COUNT_linear - 2);
    else
        drift_linear_sums_of(out, weights, cells, inputs, n, 0);
}

static void drift_score_linear(DriftTracker *t, DriftLinear own, double *scores) {
    for (int r = 0; r < t->n_rows; r++)
        drift_linear_sums(scores + (size_t)r * t->members, drift_linear_row(own, r), t->input_cells, own.inputs, own.n, own.descents);
}
static void drift_linear_scores(DriftTracker *t, double *scores) { drift_score_linear(t, drift_linear_of(t), scores); }
static void drift_context_linear_scores(DriftTracker *t, double *scores) { drift_score_linear(t, drift_context_linear_of(t), scores); }

/* One step of each, by minus the gradient of its loss in its score; `curvature` is that of the filter's loss. */
static DRIFT_INLINE void drift_linear_steps_of(float *__restrict weights, const int32_t *__restrict cells, const float *__restrict inputs, int n,
                                               double bias, const double *gradient, const double *rates, double curvature, const int descents) {
    const int adagrad = descents, kalman = descents + 1, squares = descents + 2, reduced = descents + 3, size = descents + 4;
    double variance = 0.0;
    float descent[DRIFT_COUNT_linear], step, gain;
    for (int c = 0; c < descents; c++) descent[c] = (float)(rates[c] * gradient[c]);
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + size * (1 + (size_t)cells[i]);
        float input = i < 0 ? 1.0f : inputs[i], descended = i < 0 ? (float)(bias * bias) : input, g = (float)gradient[adagrad] * input;
        for (int c = 0; c < descents; c++) cell[c] += descent[c] * descended;
        cell[squares] += g * g;
        cell[adagrad] += (float)DRIFT_ADAGRAD * g / (sqrtf(cell[squares]) + 1e-6f);
        variance += (double)((float)DRIFT_PRIOR - cell[reduced]) * (double)input * (double)input;
    }
    variance = 1.0 + curvature * variance;
    step = (float)(gradient[kalman] / variance), gain = (float)(curvature / variance);
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + size * (1 + (size_t)cells[i]);
        float share = ((float)DRIFT_PRIOR - cell[reduced]) * (i < 0 ? 1.0f : inputs[i]);
        cell[kalman] += step * share;
        cell[reduced] += gain * share * share;
    }
}

DRIFT_CLONES static void drift_linear_steps(float *__restrict weights, const int32_t *__restrict cells, const float *__restrict inputs, int n,
                                           double bias, const double *gradient, const double *rates, double curvature, int descents) {
    if (descents)
        drift_linear_steps_of(weights, cells, inputs, n, bias, gradient, rates, curvature, DRIFT_COUNT_linear - 2);
    else
        drift_linear_steps_of(weights, cells, inputs, n, bias, gradient, rates, curvature, 0);
}

/* Over sparse rows an expert by gradient descent that fell behind takes over another's weights, or starts anew. */
static void drift_linear_catch_up(DriftTracker *t, int first, double loss) {
    size_t n = (size_t)t->n_rows * t->cells;
    double patience = DRIFT_PATIENCE_BY_WEIGHT * (double)n;
    if (patience < DRIFT_PATIENCE) patience = DRIFT_PATIENCE;
    for (int k = 0; k < 2; k++) {
        double lag = t->lags[k] + t->lost[first + k] - (k ? loss : t->lost[first + 1]);
        t->lags[k] = lag > 0.0 ? lag : 0.0;
        if (lag <= patience) continue;
        t->lags[k] = 0.0;
        for (float *cell = t->linear; cell < t->linear + (DRIFT_COUNT_linear + 2) * n; cell += DRIFT_COUNT_linear + 2)
            cell[k] = k ? 0.0f : cell[1];
    }
}

static void drift_learn_linear(DriftTracker *t, DriftLinear own, int first, int number, double w) {
    for (int r = 0; r < t->n_rows; r++) {
        double gradient[DRIFT_COUNT_linear];
        for (int c = 0; c < own.descents + 2; c++) gradient[c] = w * drift_gradient(t, first + c, r, number);
        drift_linear_steps(drift_linear_row(own, r), t->input_cells, own.inputs, own.n, t->sparse ? DRIFT_SPARSE_BIAS : 1.0, gradient,
                           t->sparse ? DRIFT_DESCENT_SPARSE : DRIFT_DESCENT_DENSE,
                           w * drift_curvature(t, first + own.descents + 1, r), own.descents);
    }
}

static void drift_linear_learn(DriftTracker *t, int first, int number, double w, double loss) {
    drift_learn_linear(t, drift_linear_of(t), first, number, w);
    if (t->sparse) drift_linear_catch_up(t, first, loss);
}

static void drift_context_linear_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (t->n_context) drift_learn_linear(t, drift_context_linear_of(t), first, number, w);
}

#endif
