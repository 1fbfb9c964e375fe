/* Linear members: over the features, two by gradient descent and one by a diagonal Kalman filter; over features beside their
   context, one by AdaGrad and such a filter.

   A cell, of the bias or a feature, holds each member's weight, AdaGrad's sum of squares, and the reduction of the filter's
   variance below its prior. */

#ifndef DRIFT_LINEAR_H
#define DRIFT_LINEAR_H

/* The weights of all rows, the members, whether the last but one is AdaGrad, and an example's inputs. */
typedef struct {
    float *weights;
    int cells, members, adagrad;
    const float *inputs;
    int n;
} DriftLinear;

static inline DriftLinear drift_linear_of(const DriftTracker *t) {
    return (DriftLinear){t->linear, t->cells, DRIFT_COUNT_linear, 0, t->cell_values, t->n_cells};
}
static inline DriftLinear drift_context_linear_of(const DriftTracker *t) {
    return (DriftLinear){t->context_linear, t->context_cells, DRIFT_COUNT_context_linear, 1, t->context_values, t->n_context};
}

static DRIFT_INLINE int drift_linear_size(int members, int adagrad) { return members + adagrad + 1; } /* of a cell */
static inline float *drift_linear_row(DriftLinear linear, int row) {
    return linear.weights + (size_t)row * linear.cells * drift_linear_size(linear.members, linear.adagrad);
}
static void drift_split_linear(DriftLinear linear) {
    int size = drift_linear_size(linear.members, linear.adagrad);
    drift_split(linear.weights, (size_t)linear.cells * size, size, linear.members);
}
static void drift_linear_split(DriftTracker *t) { drift_split_linear(drift_linear_of(t)); }
static void drift_context_linear_split(DriftTracker *t) { drift_split_linear(drift_context_linear_of(t)); }

static DRIFT_INLINE void drift_linear_sums_of(double *__restrict out, const float *__restrict weights, const int32_t *__restrict cells,
                                              const float *__restrict inputs, int n, const int members, const int adagrad) {
    double sum[DRIFT_COUNT_linear];
    for (int c = 0; c < members; c++) sum[c] = (double)weights[c];
    for (int i = 0; i < n; i++) {
        const float *__restrict cell = weights + drift_linear_size(members, adagrad) * (1 + (size_t)cells[i]);
        for (int c = 0; c < members; c++) sum[c] += (double)cell[c] * (double)inputs[i];
    }
    for (int c = 0; c < members; c++) out[c] = sum[c];
}

/* The same, compiled for the members of either family. */
DRIFT_CLONES static void drift_linear_sums(double *__restrict out, const float *__restrict weights, const int32_t *__restrict cells,
                                          const float *__restrict inputs, int n, int adagrad) {
    if (adagrad)
        drift_linear_sums_of(out, weights, cells, inputs, n, DRIFT_COUNT_context_linear, 1);
    else
        drift_linear_sums_of(out, weights, cells, inputs, n, DRIFT_COUNT_linear, 0);
}

static void drift_score_linear(DriftTracker *t, DriftLinear linear, double *scores) {
    for (int r = 0; r < t->n_rows; r++)
        drift_linear_sums(scores + (size_t)r * t->members, drift_linear_row(linear, r), t->input_cells, linear.inputs, linear.n, linear.adagrad);
}
static void drift_linear_scores(DriftTracker *t, double *scores) { drift_score_linear(t, drift_linear_of(t), scores); }
static void drift_context_linear_scores(DriftTracker *t, double *scores) { drift_score_linear(t, drift_context_linear_of(t), scores); }

/* One step of each; `gradient` is minus that of its loss in its score, `curvature` that of the filter's loss. */
static DRIFT_INLINE void drift_linear_steps_of(float *__restrict weights, const int32_t *__restrict cells, const float *__restrict inputs, int n,
                                               double bias, const double *gradient, const double *rates, double curvature, const int members,
                                               const int adagrad) {
    const int kalman = members - 1, descents = kalman - adagrad, squares = members, reduced = members + adagrad;
    const int size = drift_linear_size(members, adagrad);
    double variance = 0.0;
    float descent[DRIFT_COUNT_linear], step, gain;
    for (int c = 0; c < descents; c++) descent[c] = (float)(rates[c] * gradient[c]);
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + size * (1 + (size_t)cells[i]);
        float input = i < 0 ? 1.0f : inputs[i], descended = i < 0 ? (float)(bias * bias) : input;
        for (int c = 0; c < descents; c++) cell[c] += descent[c] * descended;
        if (adagrad) {
            float g = (float)gradient[descents] * input;
            cell[squares] += g * g;
            cell[descents] += (float)DRIFT_ADAGRAD * g / (sqrtf(cell[squares]) + 1e-6f);
        }
        variance += (double)((float)DRIFT_PRIOR - cell[reduced]) * (double)input * (double)input;
    }
    variance = 1.0 + curvature * variance;
    step = (float)(gradient[kalman] / variance), gain = (float)(curvature / variance);
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + size * (1 + (size_t)cells[i]);
        float px = ((float)DRIFT_PRIOR - cell[reduced]) * (i < 0 ? 1.0f : inputs[i]);
        cell[kalman] += step * px;
        cell[reduced] += gain * px * px;
    }
}

DRIFT_CLONES static void drift_linear_steps(float *__restrict weights, const int32_t *__restrict cells, const float *__restrict inputs, int n,
                                           double bias, const double *gradient, const double *rates, double curvature, int adagrad) {
    if (adagrad)
        drift_linear_steps_of(weights, cells, inputs, n, bias, gradient, rates, curvature, DRIFT_COUNT_context_linear, 1);
    else
        drift_linear_steps_of(weights, cells, inputs, n, bias, gradient, rates, curvature, DRIFT_COUNT_linear, 0);
}

/* Over sparse rows, a descent with too much regret copies the faster one's weights, or resets. */
static void drift_linear_catch_up(DriftTracker *t, int first, double loss) {
    size_t n = (size_t)t->n_rows * t->cells;
    double patience = DRIFT_PATIENCE_BY_WEIGHT * (double)n;
    if (patience < DRIFT_PATIENCE) patience = DRIFT_PATIENCE;
    for (int k = 0; k < 2; k++) {
        double regret = t->regrets[k] + t->example_losses[first + k] - (k ? loss : t->example_losses[first + 1]);
        t->regrets[k] = regret > 0.0 ? regret : 0.0;
        if (regret <= patience) continue;
        t->regrets[k] = 0.0;
        size_t size = (size_t)drift_linear_size(DRIFT_COUNT_linear, 0);
        for (float *cell = t->linear; cell < t->linear + size * n; cell += size)
            cell[k] = k ? 0.0f : cell[1];
    }
}

static void drift_learn_linear(DriftTracker *t, DriftLinear linear, int first, int number, double w) {
    for (int r = 0; r < t->n_rows; r++) {
        double gradient[DRIFT_COUNT_linear];
        for (int c = 0; c < linear.members; c++) gradient[c] = w * drift_gradient(t, first + c, r, number);
        drift_linear_steps(drift_linear_row(linear, r), t->input_cells, linear.inputs, linear.n, t->sparse ? DRIFT_SPARSE_BIAS : 1.0, gradient,
                           t->sparse ? DRIFT_DESCENT_SPARSE : DRIFT_DESCENT_DENSE,
                           w * drift_curvature(t, first + linear.members - 1, r), linear.adagrad);
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
