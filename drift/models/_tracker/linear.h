/* Linear experts over the features: two by gradient descent, one by AdaGrad, one by a diagonal Kalman filter.

   A cell, one for the bias and for each feature, has their four weights, AdaGrad's sum of squares, and by how much the
   filter's variance is below the prior. */

#ifndef DRIFT_LINEAR_H
#define DRIFT_LINEAR_H

enum { DRIFT_CELL = 6 };

static inline int drift_linear_count(const DriftTracker *t) { (void)t; return DRIFT_COUNT_linear; }
static void drift_linear_part(DriftTracker *t) { drift_part(t->linear, (size_t)t->cells * DRIFT_CELL, DRIFT_CELL, DRIFT_COUNT_linear); }

DRIFT_CLONES static void drift_linear_sums(double *__restrict out, const float *__restrict weights, const int32_t *__restrict cells,
                                          const float *__restrict inputs, int n) {
    double sum[DRIFT_COUNT_linear];
    for (int c = 0; c < DRIFT_COUNT_linear; c++) sum[c] = (double)weights[c];
    for (int i = 0; i < n; i++) {
        const float *__restrict cell = weights + DRIFT_CELL * (1 + (size_t)cells[i]);
        for (int c = 0; c < DRIFT_COUNT_linear; c++) sum[c] += (double)cell[c] * (double)inputs[i];
    }
    for (int c = 0; c < DRIFT_COUNT_linear; c++) out[c] = sum[c];
}

static void drift_linear_scores(DriftTracker *t, double *scores) {
    for (int r = 0; r < t->n_rows; r++)
        drift_linear_sums(scores + (size_t)r * t->members, t->linear + (size_t)r * t->cells * DRIFT_CELL, t->input_cells,
                          t->cell_values, t->n_cells);
}

/* One step of each, by minus the gradient of its loss in its score; `curvature` is that of the filter's loss. */
DRIFT_CLONES static void drift_linear_steps(float *__restrict weights, const int32_t *__restrict cells, const float *__restrict inputs,
                                           int n, double bias, const double *gradient, const double *rates, double curvature) {
    double spread = 0.0;
    float slow = (float)(rates[0] * gradient[0]), fast = (float)(rates[1] * gradient[1]), step, gain;
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + DRIFT_CELL * (1 + (size_t)cells[i]);
        float input = i < 0 ? 1.0f : inputs[i], descent = i < 0 ? (float)(bias * bias) : input, g = (float)gradient[2] * input;
        cell[0] += slow * descent;
        cell[1] += fast * descent;
        cell[4] += g * g;
        cell[2] += (float)DRIFT_ADAGRAD * g / (sqrtf(cell[4]) + 1e-6f);
        spread += (double)((float)DRIFT_PRIOR - cell[5]) * (double)input * (double)input;
    }
    spread = 1.0 + curvature * spread;
    step = (float)(gradient[3] / spread), gain = (float)(curvature / spread);
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + DRIFT_CELL * (1 + (size_t)cells[i]);
        float share = ((float)DRIFT_PRIOR - cell[5]) * (i < 0 ? 1.0f : inputs[i]);
        cell[3] += step * share;
        cell[5] += gain * share * share;
    }
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
        for (float *cell = t->linear; cell < t->linear + DRIFT_CELL * n; cell += DRIFT_CELL) cell[k] = k ? 0.0f : cell[1];
    }
}

static void drift_linear_learn(DriftTracker *t, int first, int number, double w, double loss) {
    for (int r = 0; r < t->n_rows; r++) {
        double gradient[DRIFT_COUNT_linear];
        for (int c = 0; c < DRIFT_COUNT_linear; c++) gradient[c] = w * drift_gradient(t, first + c, r, number);
        drift_linear_steps(t->linear + (size_t)r * t->cells * DRIFT_CELL, t->input_cells, t->cell_values, t->n_cells,
                           t->sparse ? DRIFT_SPARSE_BIAS : 1.0, gradient, t->sparse ? DRIFT_DESCENT_SPARSE : DRIFT_DESCENT_DENSE,
                           w * drift_curvature(t, first + 3, r));
    }
    if (t->sparse) drift_linear_catch_up(t, first, loss);
}

#endif
