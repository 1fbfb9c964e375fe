/* How the tracker numbers names, draws supports and scales dense features. */

#ifndef DRIFT_SCALING_H
#define DRIFT_SCALING_H

enum { DRIFT_KNOTS = 9 };

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

/* Standardise `d` values by a running mean and variance that have them; return the sum of squares. */
DRIFT_CLONES static double drift_standardise(const double *__restrict raw, const double *__restrict mean,
                                            const double *__restrict variance, double *__restrict next_mean,
                                            double *__restrict next_variance, double *__restrict z, double rate, int d) {
    double sum = 0.0;
    for (int j = 0; j < d; j++) {
        double error = raw[j] - mean[j], deviation, value;
        double m = mean[j] + rate * error, v = (1.0 - rate) * (variance[j] + rate * error * error);
        deviation = sqrt(v);
        value = (raw[j] - m) / (deviation > 0.0 ? deviation : 1.0);
        value = value > 5.0 ? 5.0 : value < -5.0 ? -5.0 : value;
        next_mean[j] = m;
        next_variance[j] = v;
        z[j] = deviation > 1e-12 * fabs(m) ? value : 0.0;
    }
    for (int j = 0; j < d; j++) sum += z[j] * z[j];
    return sum;
}

/* Of each standardised value the knots on either side of it, half a deviation apart, and how near they are. */
DRIFT_CLONES static void drift_hats(int32_t *__restrict knots, float *__restrict hats, const double *__restrict z, int d) {
    double scale = 1.0 / sqrt(d > 1 ? d : 1);
    for (int j = 0; j < d; j++) {
        double place = 2.0 * (z[j] > 2.0 ? 2.0 : z[j] < -2.0 ? -2.0 : z[j]) + 4.0;
        int below = place < DRIFT_KNOTS - 2 ? (int)place : DRIFT_KNOTS - 2;
        knots[2 * j] = DRIFT_KNOTS * j + below;
        knots[2 * j + 1] = DRIFT_KNOTS * j + below + 1;
        hats[2 * j] = (float)((below + 1 - place) * scale);
        hats[2 * j + 1] = (float)((place - below) * scale);
    }
}

#endif
