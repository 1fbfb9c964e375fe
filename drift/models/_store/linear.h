/* The tracker's linear experts and splines, over the features. */

#ifndef DRIFT_LINEAR_H
#define DRIFT_LINEAR_H

enum { DRIFT_SLOTS = 16384, DRIFT_CELL_SIZE = 6, DRIFT_SPLINED = 256, DRIFT_SPLINE_CELL = 2 * DRIFT_SPLINES };
/* A cell of the linear experts, one for the bias and each slot: two weights by gradient descent, one by
   AdaGrad and one by a diagonal Kalman filter, AdaGrad's sum of squares, and what the filter knows. */
static const double drift_linear_rates[3] = {0.3, 3.0, 0.25}; /* of the former three */
static const float drift_prior = 10.0f, drift_walk = 0.003f; /* the filter's variance at first, what an example adds */
/* A cell of the splines, one for the bias and each knot: weights, and what their filters know. */
static const float drift_spline_walks[DRIFT_SPLINES] = {1e-4f, 0.01f};

/* The step of a diagonal Kalman filter in one weight, whose variance is what was `told` below the prior. */
static DRIFT_INLINE void drift_filter_weight(float *weight, float *told, float value, float step, float known, float walk) {
    float share = (drift_prior - *told) * value, now = *told + (known * share * share - walk);
    *weight += step * share;
    *told = now > 0.0f ? now : 0.0f;
}

/* Rounded to multiples of 2^-36, so that sums of moderate numbers do not depend on their order. */
static inline double drift_rounded(double x) { return (x + 98304.0) - 98304.0; }

/* Scores of the linear experts under the weights of a row, bias first. */
DRIFT_CLONES static void drift_linear_sums(double *out, const float *__restrict weights, const int32_t *__restrict slots,
                                          const float *__restrict values, int n) {
    double sum[DRIFT_LINEARS];
    for (int c = 0; c < DRIFT_LINEARS; c++) sum[c] = (double)weights[c];
    for (int i = 0; i < n; i++) {
        const float *__restrict cell = weights + DRIFT_CELL_SIZE * (1 + (size_t)slots[i]);
        for (int c = 0; c < DRIFT_LINEARS; c++) sum[c] += drift_rounded((double)cell[c] * (double)values[i]);
    }
    for (int c = 0; c < DRIFT_LINEARS; c++) out[c] = sum[c];
}

/* One step of each: by gradient descent, whose steps have their rates, by AdaGrad, and by the filter, for which
   `known` is the second derivative of the loss. */
DRIFT_CLONES static void drift_linear_steps(float *__restrict weights, const int32_t *__restrict slots,
                                           const float *__restrict values, int n, float slow, float fast, float adagrad,
                                           double filter, double known) {
    double spread = 0.0;
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + DRIFT_CELL_SIZE * (1 + (size_t)slots[i]);
        float value = i < 0 ? 1.0f : values[i], step = adagrad * value;
        cell[0] += slow * value;
        cell[1] += fast * value;
        cell[4] += step * step;
        cell[2] += (float)drift_linear_rates[2] * step / (sqrtf(cell[4]) + 1e-6f);
        spread += drift_rounded((double)(drift_prior - cell[5]) * (double)value * (double)value);
    }
    spread = 1.0 + known * spread;
    known /= spread;
    filter /= spread;
    for (int i = -1; i < n; i++) {
        float *cell = i < 0 ? weights : weights + DRIFT_CELL_SIZE * (1 + (size_t)slots[i]);
        drift_filter_weight(cell + 3, cell + 5, i < 0 ? 1.0f : values[i], (float)filter, (float)known, drift_walk);
    }
}

/* --- splines ------------------------------------------------------------------------------------- */

/* Scores of the splines under the weights of a row, bias first. */
DRIFT_CLONES static void drift_spline_sums(double *out, const float *__restrict weights, const int32_t *__restrict knots,
                                          const float *__restrict hats, int n) {
    double sum[DRIFT_SPLINES];
    for (int c = 0; c < DRIFT_SPLINES; c++) sum[c] = (double)weights[c];
    for (int i = 0; i < n; i++) {
        const float *__restrict cell = weights + DRIFT_SPLINE_CELL * (1 + (size_t)knots[i]);
        for (int c = 0; c < DRIFT_SPLINES; c++) sum[c] += (double)cell[c] * (double)hats[i];
    }
    for (int c = 0; c < DRIFT_SPLINES; c++) out[c] = sum[c];
}

/* One step of each: minus the gradient of the loss in its score, and the second derivative. Variances grow with how
   near a value is to a knot, so that it does not matter on which side of one rounding leaves it. */
DRIFT_CLONES static void drift_spline_steps(float *__restrict weights, const int32_t *__restrict knots, const float *__restrict hats,
                                           int n, const double *gradient, const double *known) {
    double spread[DRIFT_SPLINES] = {0};
    float step[DRIFT_SPLINES], told[DRIFT_SPLINES], root = (float)sqrt(n > 2 ? n / 2 : 1); /* hats are divided by it */
    for (int i = -1; i < n; i++) {
        const float *__restrict cell = i < 0 ? weights : weights + DRIFT_SPLINE_CELL * (1 + (size_t)knots[i]);
        double value = i < 0 ? 1.0 : (double)hats[i];
        for (int c = 0; c < DRIFT_SPLINES; c++) spread[c] += (double)(drift_prior - cell[DRIFT_SPLINES + c]) * value * value;
    }
    for (int c = 0; c < DRIFT_SPLINES; c++) {
        double divisor = 1.0 + known[c] * spread[c];
        step[c] = (float)(gradient[c] / divisor);
        told[c] = (float)(known[c] / divisor);
    }
    for (int i = -1; i < n; i++) {
        float *cell = i < 0 ? weights : weights + DRIFT_SPLINE_CELL * (1 + (size_t)knots[i]);
        float value = i < 0 ? 1.0f : hats[i], near = i < 0 ? 1.0f : root * value;
        for (int c = 0; c < DRIFT_SPLINES; c++)
            drift_filter_weight(cell + c, cell + DRIFT_SPLINES + c, value, step[c], told[c], near * drift_spline_walks[c]);
    }
}

#endif
