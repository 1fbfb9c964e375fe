/* Exponential, logarithm and softmax for vectors, the hash of names, and draws. */

#ifndef DRIFT_NUMERICS_H
#define DRIFT_NUMERICS_H

#include <float.h>

/* exp(x) for |x| <= 700: 2**n * exp(r) with |r| <= ln(2) / 2 and 14 terms of Taylor's series, summed in pairs, and in
   pairs of those, so that few wait for another one. */
#define DRIFT_TERMS(k, factorial) (1.0 / (factorial) + r * (1.0 / ((factorial) * ((k) + 1.0))))
static inline double drift_power_of_e(double x) {
    double shifted = x * 1.4426950408889634 + 6755399441055744.0; /* rounds to an integer */
    double whole = shifted - 6755399441055744.0;
    double r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10;
    double second = r * r, fourth = second * second;
    double low = (1.0 + r + DRIFT_TERMS(2, 2.0) * second) + (DRIFT_TERMS(4, 24.0) + DRIFT_TERMS(6, 720.0) * second) * fourth;
    double high = (DRIFT_TERMS(8, 40320.0) + DRIFT_TERMS(10, 3628800.0) * second) + DRIFT_TERMS(12, 479001600.0) * fourth;
    union { double real; int64_t bits; } power, exponent;
    exponent.real = shifted;
    power.bits = (int64_t)((uint64_t)(exponent.bits + 1023) << 52);
    return (low + high * (fourth * fourth)) * power.real;
}
#undef DRIFT_TERMS

/* log(x) for a normal x > 0: x = 2**n m with m about 1, and 11 terms of the series of the inverse tangent. */
static inline double drift_log(double x) {
    union { double real; int64_t bits; } whole = {x}, rest;
    int64_t shifted = whole.bits - 0x3FE6A09E667F3BCD; /* sqrt(1/2) */
    double f, square, sum = 1.0 / 21;
    rest.bits = (shifted & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD;
    f = (rest.real - 1.0) / (rest.real + 1.0);
    square = f * f;
    for (int k = 19; k > 0; k -= 2) sum = sum * square + 1.0 / k;
    return 2.0 * f * sum + (double)((int32_t)(shifted >> 32) >> 20) * 0.693147180559945309417;
}

static inline double drift_clipped(double x, double most) { return x > most ? most : x < -most ? -most : x; }

/* As a float; the largest one in place of infinity. */
static inline float drift_float(double x) { return (float)drift_clipped(x, FLT_MAX); }

/* Probabilities by class and member from scores by row and member. */
static DRIFT_INLINE void drift_softmax_of(double *__restrict softmax, const double *__restrict score, int rows, int n) {
    double top[DRIFT_LANES], sum[DRIFT_LANES];
    if (rows == 1) {
        for (int e = 0; e < n; e++) {
            softmax[n + e] = 1.0 / (1.0 + drift_power_of_e(-drift_clipped(score[e], DRIFT_SCORE_LIMIT)));
            softmax[e] = 1.0 - softmax[n + e];
        }
        return;
    }
    for (int first = 0; first < n; first += DRIFT_LANES) {
        int count = n - first < DRIFT_LANES ? n - first : DRIFT_LANES;
        for (int e = 0; e < count; e++) top[e] = score[first + e];
        for (int r = 1; r < rows; r++)
            for (int e = 0; e < count; e++)
                if (score[r * n + first + e] > top[e]) top[e] = score[r * n + first + e];
        memset(sum, 0, sizeof sum);
        for (int r = 0; r < rows; r++)
            for (int e = 0; e < count; e++) {
                double x = score[r * n + first + e] - top[e];
                double value = drift_power_of_e(x > -700.0 ? x : -700.0);
                softmax[r * n + first + e] = value;
                sum[e] += value;
            }
        for (int r = 0; r < rows; r++)
            for (int e = 0; e < count; e++) softmax[r * n + first + e] /= sum[e];
    }
}

DRIFT_CLONES static void drift_softmax(double *__restrict softmax, const double *__restrict score, int rows, int n) {
    if (n == DRIFT_USUAL)
        drift_softmax_of(softmax, score, rows, DRIFT_USUAL);
    else if (n == DRIFT_USUAL_SMALL)
        drift_softmax_of(softmax, score, rows, DRIFT_USUAL_SMALL);
    else
        drift_softmax_of(softmax, score, rows, n);
}

DRIFT_CLONES static void drift_logs(double *__restrict loss, const double *__restrict p, int n, double least, double w) {
    for (int e = 0; e < n; e++) loss[e] = -w * drift_log(p[e] > least ? p[e] : least);
}

static const uint64_t drift_step = 0x9E3779B97F4A7C15u;

/* The end of SplitMix64. */
static inline uint64_t drift_mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Hash of a text, the same in every process and on every machine, unlike Python's own. */
static uint64_t drift_hash_bytes(const char *bytes, size_t size) {
    uint64_t state = drift_mix(size + 2 * drift_step);
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

/* What a value of a feature, whose name has a number, adds to the key of its example. */
static inline uint64_t drift_key_part(uint64_t number, double value) {
    union { double real; uint64_t bits; } bits_of;
    bits_of.real = value + 0.0; /* -0.0 is 0.0 */
    return drift_mix(number ^ drift_mix(bits_of.bits + drift_step));
}

static inline uint64_t drift_number_of(uint64_t hash) {
    return hash >> (64 - DRIFT_NUMBER_BITS);
}

static inline int drift_draw(uint64_t *state, int below) {
    *state += drift_step;
    return (int)((drift_mix(*state) >> 32) * (uint64_t)below >> 32);
}

#endif
