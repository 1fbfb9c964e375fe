/* Splines: sums of curves over dense rows, each by a diagonal Kalman filter of weights that follow a random walk.

   The bias comes first. The weights of all splines at a knot lie together; the reductions of their variances below the prior
   have a block of their own. */

#ifndef DRIFT_SPLINES_H
#define DRIFT_SPLINES_H

/* The weights of all rows, and an example's knots and basis values. */
typedef struct {
    float *weights;
    size_t size; /* numbers of a row's weights, and of their variances after these */
    const DriftHats *hats;
    const int32_t *knots;
    const float *heights;
} DriftCurves;

static inline DriftCurves drift_splines_of(const DriftTracker *t) {
    return (DriftCurves){t->splines, (size_t)t->knots * DRIFT_SPLINES, &t->hats, t->hat_knots, t->hat_heights};
}
static inline DriftCurves drift_context_splines_of(const DriftTracker *t) {
    return (DriftCurves){t->context_splines, (size_t)t->context_knots * DRIFT_SPLINES, &t->context_hats,
                         t->context_hat_knots, t->context_hat_heights};
}

static void drift_split_splines(DriftCurves curves) { drift_split(curves.weights, 2 * curves.size, 2 * curves.size, curves.size); }
static void drift_splines_split(DriftTracker *t) { drift_split_splines(drift_splines_of(t)); }
static void drift_context_splines_split(DriftTracker *t) { drift_split_splines(drift_context_splines_of(t)); }

/* Gather the numbers at a point's sides into one row of vectors, padded with zeros. */
static DRIFT_INLINE void drift_gather(float *__restrict gathered, const float *__restrict numbers, const int32_t *__restrict knots, size_t n) {
    for (size_t i = 0; i < n; i++)
        memcpy(gathered + DRIFT_SIDE * i, numbers + DRIFT_SPLINES * (1 + (size_t)knots[i]), DRIFT_SIDE * sizeof *gathered);
    memset(gathered + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof *gathered);
}

/* Scores of the splines under the weights of a row, bias first. */
DRIFT_CLONES static void drift_spline_sums(double *out, const float *__restrict weights, const DriftHats *__restrict hats,
                                          const int32_t *__restrict knots, const float *__restrict heights) {
    float gathered[DRIFT_SIDE * DRIFT_SIDES];
    size_t n = (size_t)hats->n;
    double sum[DRIFT_LANES] = {0};
    drift_gather(gathered, weights, knots, n);
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) sum[lane] += (double)gathered[i + lane] * (double)heights[i + lane];
    for (int lane = DRIFT_SPLINES; lane < DRIFT_LANES; lane++) sum[lane % DRIFT_SPLINES] += sum[lane];
    for (int c = 0; c < DRIFT_SPLINES; c++) out[c] = (double)weights[c] + hats->scale * sum[c];
}

/* One step of each, by minus the gradient of its loss in its score, and the curvature. Variances grow by the basis values, so
   that rounding around a knot does not matter. */
DRIFT_CLONES static void drift_spline_steps(float *__restrict weights, float *__restrict reduced, const DriftHats *__restrict hats,
                                           const int32_t *__restrict knots, const float *__restrict heights, const double *gradient,
                                           const double *curvature) {
    float w[DRIFT_SIDE * DRIFT_SIDES], t[DRIFT_SIDE * DRIFT_SIDES], px[DRIFT_SIDE * DRIFT_SIDES];
    float step[DRIFT_LANES], gain[DRIFT_LANES], walk[DRIFT_LANES], scale = (float)hats->scale;
    size_t n = (size_t)hats->n;
    double variance[DRIFT_SPLINES], sum[DRIFT_LANES] = {0};
    drift_gather(w, weights, knots, n);
    drift_gather(t, reduced, knots, n);
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
            float value = heights[i + lane] * scale;
            px[i + lane] = ((float)DRIFT_PRIOR - t[i + lane]) * value;
            sum[lane] += (double)px[i + lane] * (double)value;
        }
    for (int c = 0; c < DRIFT_SPLINES; c++) variance[c] = (double)((float)DRIFT_PRIOR - reduced[c]);
    for (int lane = 0; lane < DRIFT_LANES; lane++) variance[lane % DRIFT_SPLINES] += sum[lane];
    for (int lane = 0; lane < DRIFT_LANES; lane++) {
        int c = lane % DRIFT_SPLINES;
        double divisor = 1.0 + curvature[c] * variance[c];
        step[lane] = (float)(gradient[c] / divisor);
        gain[lane] = (float)(curvature[c] / divisor);
        walk[lane] = (float)DRIFT_SPLINE_WALKS[c];
    }
    for (int c = 0; c < DRIFT_SPLINES; c++) {
        float bias = (float)DRIFT_PRIOR - reduced[c], now = reduced[c] + (gain[c] * bias * bias - walk[c]);
        weights[c] += step[c] * bias;
        reduced[c] = now > 0.0f ? now : 0.0f;
    }
    for (size_t i = 0; i < DRIFT_SIDE * n; i += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {
            float now = t[i + lane] + (gain[lane] * px[i + lane] * px[i + lane] - heights[i + lane] * walk[lane]);
            w[i + lane] += step[lane] * px[i + lane];
            t[i + lane] = now > 0.0f ? now : 0.0f;
        }
    for (size_t i = 0; i < n; i++) {
        size_t knot = DRIFT_SPLINES * (1 + (size_t)knots[i]);
        memcpy(weights + knot, w + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *w);
        memcpy(reduced + knot, t + DRIFT_SIDE * i, DRIFT_SIDE * sizeof *t);
    }
}

static void drift_score_splines(DriftTracker *t, DriftCurves curves, double *scores) {
    for (int r = 0; r < t->n_rows; r++) drift_spline_sums(scores + (size_t)r * t->members, curves.weights + 2 * r * curves.size, curves.hats, curves.knots, curves.heights);
}
static void drift_splines_scores(DriftTracker *t, double *scores) { drift_score_splines(t, drift_splines_of(t), scores); }
static void drift_context_splines_scores(DriftTracker *t, double *scores) { drift_score_splines(t, drift_context_splines_of(t), scores); }

static void drift_learn_splines(DriftTracker *t, DriftCurves curves, int first, int number, double w) {
    for (int r = 0; r < t->n_rows; r++) {
        float *weights = curves.weights + 2 * r * curves.size;
        double gradient[DRIFT_SPLINES], curvature[DRIFT_SPLINES];
        for (int c = 0; c < DRIFT_SPLINES; c++) {
            gradient[c] = w * drift_gradient(t, first + c, r, number);
            curvature[c] = w * drift_curvature(t, first + c, r);
        }
        drift_spline_steps(weights, weights + curves.size, curves.hats, curves.knots, curves.heights, gradient, curvature);
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
