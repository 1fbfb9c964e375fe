/* The tracker's linear experts and splines, over the features. */

#ifndef DRIFT_LINEAR_H
#define DRIFT_LINEAR_H

enum { DRIFT_SLOTS = 16384, DRIFT_CELL_SIZE = 6 };
/* A cell of the linear experts, one for the bias and each slot: two weights by gradient descent, one by
   AdaGrad and one by a diagonal Kalman filter, AdaGrad's sum of squares, and what the filter knows. */
static const double drift_descent[2][2] = {{0.3, 3.0}, {0.8, 8.0}}; /* rates of the former two over dense and sparse rows, */
static const double drift_bias[2] = {1.0, 0.2}; /* and what the bias counts as a feature there */
static const float drift_adagrad = 0.25f;
#define DRIFT_PATIENCE 15.0 /* nats that these may fall behind over sparse rows, */
#define DRIFT_PATIENCE_BY_WEIGHT 1e-3 /* and for each weight, where that is more */
static const float drift_prior = 10.0f, drift_walk = 0.003f; /* the filter's variance at first, what an example adds */
/* Of the splines, bias first, the weights of each knot lie together, and what their filters know elsewhere. */
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

/* One step of each: by gradient descent, whose steps have their rates, and the weight of the bias `bias` of them; by
   AdaGrad; and by the filter, for which `known` is the second derivative of the loss. */
DRIFT_CLONES static void drift_linear_steps(float *__restrict weights, const int32_t *__restrict slots,
                                           const float *__restrict values, int n, float bias, float slow, float fast,
                                           float adagrad, double filter, double known) {
    double spread = 0.0;
    for (int i = -1; i < n; i++) {
        float *__restrict cell = i < 0 ? weights : weights + DRIFT_CELL_SIZE * (1 + (size_t)slots[i]);
        float value = i < 0 ? 1.0f : values[i], step = adagrad * value;
        float descent = i < 0 ? bias : value;
        cell[0] += slow * descent;
        cell[1] += fast * descent;
        cell[4] += step * step;
        cell[2] += drift_adagrad * step / (sqrtf(cell[4]) + 1e-6f);
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

/* Let one of the experts take over the weights of another one, or none. */
static void drift_take_over(float *cells, size_t n, int to, int from) {
    for (float *cell = cells; cell < cells + DRIFT_CELL_SIZE * n; cell += DRIFT_CELL_SIZE) cell[to] = from < 0 ? 0.0f : cell[from];
}

/* --- splines ------------------------------------------------------------------------------------- */

/* Copy what the sides around a point have together, so that all knots are in one row of vectors; zeros behind. */
static DRIFT_INLINE void drift_gather(float *__restrict found, const float *__restrict numbers, const int32_t *__restrict knots, size_t first,
                                      size_t last) {
    for (size_t i = first; i < last; i++)
        memcpy(found + DRIFT_SIDE * i, numbers + DRIFT_SPLINES * (1 + (size_t)knots[i]), DRIFT_SIDE * sizeof *found);
    memset(found + DRIFT_SIDE * last, 0, DRIFT_LANES * sizeof *found);
}

/* Scores of the splines under the weights of a row, bias first, in which new names have none. */
DRIFT_CLONES static void drift_spline_sums(double *out, const float *__restrict weights, const DriftHats *__restrict hats) {
    float found[DRIFT_SIDE * DRIFT_SIDES];
    for (int c = 0; c < DRIFT_SPLINES; c++) out[c] = (double)weights[c];
    for (int part = 0; part < 2; part++) {
        size_t first = hats->first[part], last = hats->fresh[part];
        double sum[DRIFT_LANES] = {0};
        drift_gather(found, weights, hats->knots, first, last);
        for (size_t i = DRIFT_SIDE * first; i < DRIFT_SIDE * last; i += DRIFT_LANES)
            DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) sum[lane] += (double)found[i + lane] * (double)hats->heights[i + lane];
        for (int lane = DRIFT_SPLINES; lane < DRIFT_LANES; lane++) sum[lane % DRIFT_SPLINES] += sum[lane];
        for (int c = 0; c < DRIFT_SPLINES; c++) out[c] += hats->scale[part] * sum[c];
    }
}

/* One step of each: minus the gradient of the loss in its score, and the second derivative. Variances grow with how
   near a value is to a knot, so that it does not matter on which side of one rounding leaves it. */
DRIFT_CLONES static void drift_spline_steps(float *__restrict weights, float *__restrict told, const DriftHats *__restrict hats,
                                           const double *gradient, const double *known) {
    float w[DRIFT_SIDE * DRIFT_SIDES], t[DRIFT_SIDE * DRIFT_SIDES], share[DRIFT_SIDE * DRIFT_SIDES];
    float step[DRIFT_LANES], tells[DRIFT_LANES], walk[DRIFT_LANES];
    const float *__restrict heights = hats->heights;
    double spread[DRIFT_SPLINES];
    for (int c = 0; c < DRIFT_SPLINES; c++) spread[c] = (double)(drift_prior - told[c]);
    for (int part = 0; part < 2; part++) {
        size_t first = hats->first[part], last = hats->last[part];
        float scale = (float)hats->scale[part];
        double sum[DRIFT_LANES] = {0};
        drift_gather(w, weights, hats->knots, first, last);
        drift_gather(t, told, hats->knots, first, last);
        for (size_t i = DRIFT_SIDE * first; i < DRIFT_SIDE * last; i += DRIFT_LANES)
            DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
                float value = heights[i + lane] * scale;
                share[i + lane] = (drift_prior - t[i + lane]) * value;
                sum[lane] += (double)share[i + lane] * (double)value;
            }
        for (int lane = 0; lane < DRIFT_LANES; lane++) spread[lane % DRIFT_SPLINES] += sum[lane];
    }
    for (int lane = 0; lane < DRIFT_LANES; lane++) {
        int c = lane % DRIFT_SPLINES;
        double divisor = 1.0 + known[c] * spread[c];
        step[lane] = (float)(gradient[c] / divisor);
        tells[lane] = (float)(known[c] / divisor);
        walk[lane] = drift_spline_walks[c];
    }
    for (int c = 0; c < DRIFT_SPLINES; c++) drift_filter_weight(weights + c, told + c, 1.0f, step[c], tells[c], walk[c]);
    for (int part = 0; part < 2; part++) {
        size_t first = hats->first[part], last = hats->last[part];
        for (size_t i = DRIFT_SIDE * first; i < DRIFT_SIDE * last; i += DRIFT_LANES)
            DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
                float now = t[i + lane] + (tells[lane] * share[i + lane] * share[i + lane] - heights[i + lane] * walk[lane]);
                w[i + lane] += step[lane] * share[i + lane];
                t[i + lane] = now > 0.0f ? now : 0.0f;
            }
        for (size_t i = first; i < last; i++) {
            size_t knot = DRIFT_SPLINES * (1 + (size_t)hats->knots[i]);
            memcpy(weights + knot, w + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *w);
            memcpy(told + knot, t + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *t);
        }
    }
}

#endif
