/* How the tracker numbers names, draws supports and scales dense features. */

#ifndef DRIFT_SCALING_H
#define DRIFT_SCALING_H

enum { DRIFT_KNOTS = 9, DRIFT_SPLINED = 256, DRIFT_PAIR_KNOTS = 5, DRIFT_PAIRED = 16 };
/* Knots of the surfaces of all pairs. */
enum { DRIFT_SURFACES = DRIFT_PAIR_KNOTS * DRIFT_PAIR_KNOTS * (DRIFT_PAIRED * (DRIFT_PAIRED - 1) / 2) };
/* A side of a point: two knots next to each other, with a number for each spline at either. The most sides are those of
   256 curves and two in the surface of each pair; behind them is a vector of zeros. */
enum { DRIFT_SIDE = 2 * DRIFT_SPLINES, DRIFT_VECTOR = DRIFT_LANES / DRIFT_SIDE };
enum { DRIFT_SIDES = DRIFT_SPLINED + DRIFT_PAIRED * (DRIFT_PAIRED - 1) + DRIFT_VECTOR };

/* An example to the splines: its sides, one in the curve of each feature that it has and, from the next full vector on,
   two in the surface of each pair of these; heights, which are how near each knot is, for all splines; one over the root of
   the number of these curves, and of these surfaces, by which they are multiplied; and behind which side names are new. */
typedef struct {
    int32_t knots[DRIFT_SIDES];
    float heights[DRIFT_SIDE * DRIFT_SIDES];
    double scale[2];
    int first[2], last[2], fresh[2];
} DriftHats;

static const uint64_t drift_step = 0x9E3779B97F4A7C15u;

/* The end of SplitMix64. */
static inline uint64_t drift_mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* The same in every process and on every machine, unlike Python's own. */
static uint64_t drift_hash_bytes(const char *bytes, size_t size) {
    uint64_t state = drift_mix(size + drift_step);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        if (size - i >= 8)
            for (int k = 0; k < 8; k++) word |= (uint64_t)(unsigned char)bytes[i + k] << 8 * k;
        else
            for (size_t k = 0; k < size - i; k++) word |= (uint64_t)(unsigned char)bytes[i + k] << 8 * k;
        state = drift_mix(state ^ word);
    }
    return state;
}

static inline int drift_draw(uint64_t *state, int below) {
    *state += drift_step;
    return (int)((drift_mix(*state) >> 32) * (uint64_t)below >> 32);
}

/* Standardise `d` values by a running mean and variance that have them; return the sum of squares. Behind ten examples a value
   farther off than 5 deviations counts as that far, so that one, as of a broken sensor, does not leave the others without a
   difference. The variance of what is seldom there thus fades; at next to nothing it begins anew. */
DRIFT_CLONES static double drift_standardise(const double *__restrict raw, const double *__restrict mean,
                                            const double *__restrict variance, double *__restrict next_mean,
                                            double *__restrict next_variance, double *__restrict z, double rate, int d) {
    double sum = 0.0;
    for (int j = 0; j < d; j++) {
        double error = raw[j] - mean[j], most = 5.0 * sqrt(variance[j]), deviation, value;
        error = rate >= 0.1 || !(variance[j] > 0.0) ? error : error > most ? most : error < -most ? -most : error;
        double m = mean[j] + rate * error, v = (1.0 - rate) * (variance[j] + rate * error * error);
        deviation = sqrt(v);
        value = (raw[j] - m) / (deviation > 0.0 ? deviation : 1.0);
        value = value > 3.0 ? 3.0 : value < -3.0 ? -3.0 : value;
        next_mean[j] = m;
        next_variance[j] = v > 1e-200 ? v : 0.0;
        z[j] = deviation > 1e-12 * fabs(m) ? value : 0.0;
    }
    for (int j = 0; j < d; j++) sum += z[j] * z[j];
    return sum;
}

/* Number of the weights of a spline but its bias. Surfaces are behind room for the curves of the names that have them, and
   before the other curves, so that nothing moves as names join. */
static inline int drift_n_knots(int names, int pairs) {
    int curves = names < DRIFT_SPLINED ? names : DRIFT_SPLINED, paired = names < DRIFT_PAIRED ? names : DRIFT_PAIRED;
    if (!pairs || !names) return DRIFT_KNOTS * curves;
    if (curves < DRIFT_PAIRED) curves = DRIFT_PAIRED;
    return DRIFT_KNOTS * curves + DRIFT_PAIR_KNOTS * DRIFT_PAIR_KNOTS * (paired * (paired - 1) / 2);
}

/* The knot below a standardised value, of those from -2 to 2, and how far behind it the value is. */
static DRIFT_INLINE int drift_knot(double z, int knots, double *behind) {
    double most = 0.25 * (knots - 1), place = most * (z > 2.0 ? 2.0 : z < -2.0 ? -2.0 : z) + 2.0 * most;
    int below = place < knots - 2 ? (int)place : knots - 2;
    *behind = place - below;
    return below;
}

static DRIFT_INLINE void drift_side(DriftHats *__restrict hats, int i, int knot, double left, double right) {
    float *heights = hats->heights + DRIFT_SIDE * i;
    hats->knots[i] = knot;
    for (int c = 0; c < DRIFT_SPLINES; c++) {
        heights[c] = (float)left;
        heights[DRIFT_SPLINES + c] = (float)right;
    }
}

/* Hats of `d` standardised values, of which so many belong to known names; with surfaces or without. The example lacks a
   feature that is 0 in it and in most others: of one that is 0 or 1, in two of three, as rounding may have it. */
DRIFT_CLONES static void drift_hats(DriftHats *__restrict hats, const double *__restrict z, const double *__restrict raw,
                                   const double *__restrict mean, const double *__restrict variance, int d, int known, int pairs) {
    int n = 0, paired = 0;
    int number[DRIFT_PAIRED], below[DRIFT_PAIRED];
    double behind[DRIFT_PAIRED];
    memset(hats->fresh, 0, sizeof hats->fresh);
    if (d > DRIFT_SPLINED) d = DRIFT_SPLINED;
    for (int j = 0; j < d; j++) {
        double right;
        int knot;
        if (raw[j] == 0.0 && 2.0 * mean[j] * mean[j] <= (1.0 + 1e-9) * variance[j]) continue;
        knot = drift_knot(z[j], DRIFT_KNOTS, &right);
        drift_side(hats, n++, DRIFT_KNOTS * j + (pairs && j >= DRIFT_PAIRED ? DRIFT_SURFACES : 0) + knot, 1.0 - right, right);
        if (j < known) hats->fresh[0] = n;
        if (j < DRIFT_PAIRED) number[paired++] = j;
    }
    memset(hats->heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    hats->first[0] = 0;
    hats->last[0] = n;
    hats->scale[0] = 1.0 / sqrt(n > 1 ? n : 1);
    n = (n + DRIFT_VECTOR - 1) / DRIFT_VECTOR * DRIFT_VECTOR; /* or the curves' last vector would end in surfaces */
    hats->first[1] = hats->fresh[1] = n;
    if (pairs) {
        for (int b = 0; b < paired; b++) {
            int j = number[b], first = DRIFT_KNOTS * DRIFT_PAIRED + DRIFT_PAIR_KNOTS * DRIFT_PAIR_KNOTS * (j * (j - 1) / 2);
            below[b] = drift_knot(z[j], DRIFT_PAIR_KNOTS, behind + b);
            for (int a = 0; a < b; a++, n += 2) {
                double left = 1.0 - behind[a], right = behind[a];
                int knot = first + DRIFT_PAIR_KNOTS * (DRIFT_PAIR_KNOTS * number[a] + below[b]) + below[a];
                drift_side(hats, n, knot, (1.0 - behind[b]) * left, (1.0 - behind[b]) * right);
                drift_side(hats, n + 1, knot + DRIFT_PAIR_KNOTS, behind[b] * left, behind[b] * right);
            }
            if (j < known) hats->fresh[1] = n;
        }
        memset(hats->heights + DRIFT_SIDE * n, 0, DRIFT_LANES * sizeof(float));
    }
    hats->last[1] = n;
    hats->scale[1] = 1.0 / sqrt(paired > 2 ? paired * (paired - 1) / 2 : 1);
}

#endif
