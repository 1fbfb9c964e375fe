/* Hat basis functions of the splines: curves, one of each dense feature, and surfaces, one of each pair of the first features. */

#ifndef DRIFT_HATS_H
#define DRIFT_HATS_H

enum { DRIFT_SPLINES = DRIFT_COUNT_splines };
/* A side: two adjacent knots, with a number for each spline at either. A point has a side in each curve and two in the surface
   of each pair, and a vector of zeros as padding. */
enum { DRIFT_SIDE = 2 * DRIFT_SPLINES, DRIFT_VECTOR = DRIFT_LANES / DRIFT_SIDE };
enum { DRIFT_SIDES = DRIFT_SPLINED + DRIFT_PAIRED * (DRIFT_PAIRED - 1) + DRIFT_VECTOR };
_Static_assert(2 * DRIFT_VECTOR - 1 <= DRIFT_SPARE_SIDES, "no room offset the sides");

/* Sides of a point: one in the curve of each feature of the example and, from the next full vector on, two in the surface of
   each pair. Heights, the basis values of each knot, for all splines. `scale` is one over the root of the number of these
   curves, and of these surfaces. */
typedef struct {
    double scale[2];
    int first[2], last[2];
} DriftHats;

/* The first knot of a feature's curve, which its surfaces with earlier features follow; for the number of features, the number
   of all knots. The bias does not count. */
static inline int drift_first_knot(int feature, int pairs) {
    int paired = feature < DRIFT_PAIRED ? feature : DRIFT_PAIRED;
    return DRIFT_KNOTS * feature + (pairs ? DRIFT_PAIR_KNOTS * DRIFT_PAIR_KNOTS * (paired * (paired - 1) / 2) : 0);
}

static inline int drift_n_knots(int names, int pairs) { return drift_first_knot(names < DRIFT_SPLINED ? names : DRIFT_SPLINED, pairs); }

/* The knot below a standardised value, on knots from -2 to 2, and the value's distance from it. */
static DRIFT_INLINE int drift_knot(double z, int knots, double *offset) {
    double most = 0.25 * (knots - 1), place = most * (z > 2.0 ? 2.0 : z < -2.0 ? -2.0 : z) + 2.0 * most;
    int below = place < knots - 2 ? (int)place : knots - 2;
    *offset = place - below;
    return below;
}

static DRIFT_INLINE void drift_side(int32_t *__restrict knots, float *__restrict heights, int i, int knot, double left, double right) {
    heights += DRIFT_SIDE * i;
    knots[i] = knot;
    for (int c = 0; c < DRIFT_SPLINES; c++) {
        heights[c] = (float)left;
        heights[DRIFT_SPLINES + c] = (float)right;
    }
}

/* Hats of standardised values; NaN where the example lacks the feature. */
DRIFT_CLONES static void drift_hats(DriftHats *__restrict hats, int32_t *__restrict knots, float *__restrict heights,
                                   const double *__restrict z, int d, int pairs) {
    int n = 0, paired = 0;
    int number[DRIFT_PAIRED], below[DRIFT_PAIRED];
    double offset[DRIFT_PAIRED];
    if (d > DRIFT_SPLINED) d = DRIFT_SPLINED;
    for (int j = 0; j < d; j++) {
        double right;
        int knot;
        if (!(z[j] == z[j])) continue;
        knot = drift_knot(z[j], DRIFT_KNOTS, &right);
        drift_side(knots, heights, n++, drift_first_knot(j, pairs) + knot, 1.0 - right, right);
        if (j < DRIFT_PAIRED) number[paired++] = j;
    }
    memset(heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    hats->first[0] = 0;
    hats->last[0] = n;
    hats->scale[0] = 1.0 / sqrt(n > 1 ? n : 1);
    n = (n + DRIFT_VECTOR - 1) / DRIFT_VECTOR * DRIFT_VECTOR; /* surfaces start on a vector */
    hats->first[1] = n;
    if (pairs) {
        for (int b = 0; b < paired; b++) {
            int j = number[b], first = drift_first_knot(j, pairs) + DRIFT_KNOTS;
            below[b] = drift_knot(z[j], DRIFT_PAIR_KNOTS, offset + b);
            for (int a = 0; a < b; a++, n += 2) {
                double left = 1.0 - offset[a], right = offset[a];
                int knot = first + DRIFT_PAIR_KNOTS * (DRIFT_PAIR_KNOTS * number[a] + below[b]) + below[a];
                drift_side(knots, heights, n, knot, (1.0 - offset[b]) * left, (1.0 - offset[b]) * right);
                drift_side(knots, heights, n + 1, knot + DRIFT_PAIR_KNOTS, offset[b] * left, offset[b] * right);
            }
        }
        memset(heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    }
    hats->last[1] = n;
    hats->scale[1] = 1.0 / sqrt(paired > 2 ? paired * (paired - 1) / 2 : 1);
}

#endif
