/* Hat basis functions of the splines: curves, one of each dense feature. */

#ifndef DRIFT_HATS_H
#define DRIFT_HATS_H

/* A side: two adjacent knots. A point has a side in each curve, and a vector of zeros as padding. */
enum { DRIFT_SIDE = 2, DRIFT_VECTOR = DRIFT_LANES / DRIFT_SIDE, DRIFT_SIDES = DRIFT_SPLINED + DRIFT_VECTOR };
_Static_assert(DRIFT_VECTOR <= DRIFT_SPARE_SIDES, "no room beside the sides");

/* Sides of a point. Heights are the basis values of each knot; `scale` is one over the root of their number. */
typedef struct {
    double scale;
    int n;
} DriftHats;

/* The knot below a standardised value, on knots from -2 to 2, and the value's distance from it. */
static DRIFT_INLINE int drift_knot(double z, double *offset) {
    double most = 0.25 * (DRIFT_KNOTS - 1), place = most * (z > 2.0 ? 2.0 : z < -2.0 ? -2.0 : z) + 2.0 * most;
    int below = place < DRIFT_KNOTS - 2 ? (int)place : DRIFT_KNOTS - 2;
    *offset = place - below;
    return below;
}

/* Hats of standardised values; NaN where the example lacks the feature. */
DRIFT_CLONES static void drift_hats(DriftHats *__restrict hats, int32_t *__restrict knots, float *__restrict heights,
                                   const double *__restrict z, int d) {
    int n = 0;
    if (d > DRIFT_SPLINED) d = DRIFT_SPLINED;
    for (int j = 0; j < d; j++) {
        double right;
        if (!(z[j] == z[j])) continue;
        knots[n] = DRIFT_KNOTS * j + drift_knot(z[j], &right);
        heights[DRIFT_SIDE * n] = (float)(1.0 - right);
        heights[DRIFT_SIDE * n + 1] = (float)right;
        n++;
    }
    memset(heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    hats->n = n;
    hats->scale = 1.0 / sqrt(n > 1 ? n : 1);
}

#endif
