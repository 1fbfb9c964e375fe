/* An example to the splines: how near it is to the knots of curves, one of each dense feature, and of surfaces, one of each
   pair of the first features. */

#ifndef DRIFT_HATS_H
#define DRIFT_HATS_H

enum { DRIFT_SPLINES = DRIFT_COUNT_splines };
/* A side of a point: two knots next to each other, with a number for each spline at either. The most sides are those of
   all curves and two in the surface of each pair; behind them is a vector of zeros. */
enum { DRIFT_SIDE = 2 * DRIFT_SPLINES, DRIFT_VECTOR = DRIFT_LANES / DRIFT_SIDE };
enum { DRIFT_SIDES = DRIFT_SPLINED + DRIFT_PAIRED * (DRIFT_PAIRED - 1) + DRIFT_VECTOR };
_Static_assert(2 * DRIFT_VECTOR - 1 <= DRIFT_SPARE_SIDES, "no room behind the sides");

/* Sides: one in the curve of each feature that the example has and, from the next full vector on, two in the surface of each
   pair of these; heights, which are how near each knot is, for all splines; and by what they are multiplied: one over the
   root of the number of these curves, and of these surfaces. */
typedef struct {
    double scale[2];
    int first[2], last[2];
} DriftHats;

/* The first knot of a feature's curve, behind which are its surfaces with the features before it; for the number of features
   it is that of all knots. The bias does not count. */
static inline int drift_first_knot(int feature, int pairs) {
    int paired = feature < DRIFT_PAIRED ? feature : DRIFT_PAIRED;
    return DRIFT_KNOTS * feature + (pairs ? DRIFT_PAIR_KNOTS * DRIFT_PAIR_KNOTS * (paired * (paired - 1) / 2) : 0);
}

static inline int drift_n_knots(int names, int pairs) { return drift_first_knot(names < DRIFT_SPLINED ? names : DRIFT_SPLINED, pairs); }

/* The knot below a standardised value, of those from -2 to 2, and how far behind it the value is. */
static DRIFT_INLINE int drift_knot(double z, int knots, double *behind) {
    double most = 0.25 * (knots - 1), place = most * (z > 2.0 ? 2.0 : z < -2.0 ? -2.0 : z) + 2.0 * most;
    int below = place < knots - 2 ? (int)place : knots - 2;
    *behind = place - below;
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
    double behind[DRIFT_PAIRED];
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
    n = (n + DRIFT_VECTOR - 1) / DRIFT_VECTOR * DRIFT_VECTOR; /* or the curves' last vector would end in surfaces */
    hats->first[1] = n;
    if (pairs) {
        for (int b = 0; b < paired; b++) {
            int j = number[b], first = drift_first_knot(j, pairs) + DRIFT_KNOTS;
            below[b] = drift_knot(z[j], DRIFT_PAIR_KNOTS, behind + b);
            for (int a = 0; a < b; a++, n += 2) {
                double left = 1.0 - behind[a], right = behind[a];
                int knot = first + DRIFT_PAIR_KNOTS * (DRIFT_PAIR_KNOTS * number[a] + below[b]) + below[a];
                drift_side(knots, heights, n, knot, (1.0 - behind[b]) * left, (1.0 - behind[b]) * right);
                drift_side(knots, heights, n + 1, knot + DRIFT_PAIR_KNOTS, behind[b] * left, behind[b] * right);
            }
        }
        memset(heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    }
    hats->last[1] = n;
    hats->scale[1] = 1.0 / sqrt(paired > 2 ? paired * (paired - 1) / 2 : 1);
}

#endif
