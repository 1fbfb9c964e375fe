/* Splines: sums of curves over dense rows, by a diagonal Kalman filter of weights that follow a random walk.

   The bias comes first. The reductions of the weights' variances below the prior have a block of their own. */

#ifndef DRIFT_SPLINES_H
#define DRIFT_SPLINES_H

/* The weights of all rows, and an example's knots and basis values. */
typedef struct {
    float *weights;
    size_t size; /* numbers of a row's weights, and of their variances after these */
    float walk;
    const DriftHats *hats;
    const int32_t *knots;
    const float *heights;
} DriftCurves;

static inline DriftCurves drift_splines_of(const DriftTracker *t) {
    return (DriftCurves){t->splines, (size_t)t->knots, (float)DRIFT_SPLINE_WALK, &t->hats, t->hat_knots, t->hat_heights};
}
static inline DriftCurves drift_context_splines_of(const DriftTracker *t) {
    return (DriftCurves){t->context_splines, (size_t)t->context_knots, (float)DRIFT_CONTEXT_SPLINE_WALK, &t->context_hats,
                         t->context_hat_knots, t->context_hat_heights};
}

static void drift_split_splines(DriftCurves curves) { drift_split(curves.weights, 2 * curves.size, 2 * curves.size, curves.size); }
static void drift_splines_split(DriftTracker *t) { drift_split_splines(drift_splines_of(t)); }
static void drift_context_splines_split(DriftTracker *t) { drift_split_splines(drift_context_splines_of(t)); }

/* Gather the numbers at a point's sides into one row of vectors, padded with zeros. */
static DRIFT_INLINE void drift_gather(float *__restrict gathered, const float *__restrict numbers, const int32_t *__restrict knots, size_t n) {
    for (size_t i = 0; i < n; i++)
        memcpy(gathered + DRIFT_SIDE * i, numbers + 1 + (size_t)knots[i], DRIFT_SIDE * sizeof *gathered);
    memset(gathered + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof *gathered);
}

/* The splines' score under the weights of a row, bias first. */
DRIFT_CLONES static double drift_spline_sum(const float *__restrict weights, const DriftHats *__restrict hats,
                                           const int32_t *__restrict knots, const float *__restrict heights) {
    float gathered[DRIFT_SIDE * DRIFT_SIDES];
    size_t n = (size_t)hats->n;
    double sum[DRIFT_LANES] = {0};
    drift_gather(gathered, weights, knots, n);
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) sum[lane] += (double)gathered[i + lane] * (double)heights[i + lane];
    for (int lane = 1; lane < DRIFT_LANES; lane++) sum[0] += sum[lane];
    return (double)weights[0] + hats->scale * sum[0];
}

/* One step, by minus the gradient of the loss in the score, and the curvature. Variances grow by the basis values, so
   that rounding around a knot does not matter. */
DRIFT_CLONES static void drift_spline_step(float *__restrict weights, float *__restrict reduced, const DriftHats *__restrict hats,
                                           const int32_t *__restrict knots, const float *__restrict heights, double gradient,
                                           double curvature, float walk) {
    float w[DRIFT_SIDE * DRIFT_SIDES], t[DRIFT_SIDE * DRIFT_SIDES], px[DRIFT_SIDE * DRIFT_SIDES];
    float step, gain, bias = (float)DRIFT_PRIOR - reduced[0], now, scale = (float)hats->scale;
    size_t n = (size_t)hats->n;
    double variance = (double)bias, divisor, sum[DRIFT_LANES] = {0};
    drift_gather(w, weights, knots, n);
    drift_gather(t, reduced, knots, n);
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
            float value = heights[i + lane] * scale;
            px[i + lane] = ((float)DRIFT_PRIOR - t[i + lane]) * value;
            sum[lane] += (double)px[i + lane] * (double)value;
        }
    for (int lane = 0; lane < DRIFT_LANES; lane++) variance += sum[lane];
    divisor = 1.0 + curvature * variance;
    step = (float)(gradient / divisor), gain = (float)(curvature / divisor);
    now = reduced[0] + (gain * bias * bias - walk);
    weights[0] += step * bias;
    reduced[0] = now > 0.0f ? now : 0.0f;
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
            float after = t[i + lane] + (gain * px[i + lane] * px[i + lane] - heights[i + lane] * walk);
            w[i + lane] += step * px[i + lane];
            t[i + lane] = after > 0.0f ? after : 0.0f;
        }
    for (size_t i = 0; i < n; i++) {
        size_t knot = 1 + (size_t)knots[i];
        memcpy(weights + knot, w + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *w);
        memcpy(reduced + knot, t + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *t);
    }
}

static void drift_score_splines(DriftTracker *t, DriftCurves curves, double *scores) {
    for (int r = 0; r < t->n_rows; r++) scores[(size_t)r * t->members] = drift_spline_sum(curves.weights + 2 * r * curves.size, curves.hats, curves.knots, curves.heights);
}
static void drift_splines_scores(DriftTracker *t, double *scores) { drift_score_splines(t, drift_splines_of(t), scores); }
static void drift_context_splines_scores(DriftTracker *t, double *scores) { drift_score_splines(t, drift_context_splines_of(t), scores); }

static void drift_learn_splines(DriftTracker *t, DriftCurves curves, int first, int number, double w) {
    for (int r = 0; r < t->n_rows; r++) {
        float *weights = curves.weights + 2 * r * curves.size;
        drift_spline_step(weights, weights + curves.size, curves.hats, curves.knots, curves.heights, w * drift_gradient(t, first, r, number),
                           w * drift_curvature(t, first, r), curves.walk);
    }
}
static void drift_splines_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (!t->sparse) drift_learn_splines(t, drift_splines_of(t), first, number, w);
}
static void drift_context_splines_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (t->n_context) drift_learn_splines(t, drift_context_splines_of(t), first, number, w);
}

#endif
