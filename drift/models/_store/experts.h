/* The tracker's experts: kernels of many widths from one row of inner products, the coefficients of all
   experts over it, and linear experts and splines over the features.

   Slots come in multiples of the lanes; every sum over slots has a fixed number of them. */

#ifndef DRIFT_EXPERTS_H
#define DRIFT_EXPERTS_H

enum { DRIFT_DRAWS = 16, DRIFT_SLOTS = 16384, DRIFT_CELL_SIZE = 6 };
enum { DRIFT_KNOTS = 9, DRIFT_SPLINED = 256, DRIFT_SPLINE_CELL = 2 * DRIFT_SPLINES };
/* A cell of the linear experts, one for the bias and each slot: two weights by gradient descent, one by
   AdaGrad and one by a diagonal Kalman filter, AdaGrad's sum of squares, and what the filter knows. */
static const double drift_linear_rates[3] = {0.3, 3.0, 0.25}; /* of the former three */
static const float drift_prior = 10.0f, drift_walk = 0.003f; /* the filter's variance at first, what an example adds */
/* A cell of the splines, one for the bias and each knot: weights, and what their filters know. */
static const float drift_spline_walks[DRIFT_SPLINES] = {1e-4f, 0.01f};

/* --- names --------------------------------------------------------------------------------------- */

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

/* --- scale --------------------------------------------------------------------------------------- */

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

/* --- experts over the supports ------------------------------------------------------------------- */

/* Squared distances from inner products; what is within rounding of 0 is 0. */
DRIFT_CLONES static void drift_distances(float *__restrict distance, float *__restrict dots, const double *__restrict row,
                                        const double *__restrict squared, double own, int n) {
    for (int i = 0; i < n; i++) {
        double sum = squared[i] + own, d = sum - 2.0 * row[i];
        distance[i] = (float)(d > DRIFT_TIE * sum ? d : 0.0);
        dots[i] = (float)row[i];
    }
}

DRIFT_CLONES static void drift_all_distances(double *__restrict distance, const double *__restrict row,
                                            const double *__restrict squared, double own, int n) {
    for (int i = 0; i < n; i++) {
        double sum = squared[i] + own, d = sum - 2.0 * row[i];
        distance[i] = d > DRIFT_TIE * sum ? d : 0.0;
    }
}

/* Kernels below exp(-40), and coefficients too small to count, are flushed to 0: their products would be denormal, and
   cost some processors a hundred cycles each. */
static const float drift_far = 40.0f, drift_far_eighth = 6.73794700e-3f; /* exp(-40 / 8) */

static inline float drift_flushed(double coefficient) { return fabs(coefficient) > 1e-20 ? (float)coefficient : 0.0f; }

/* exp(-width * distance), to a few units in the last place. */
DRIFT_CLONES static void drift_gaussians(float *__restrict out, const float *__restrict distance, float width, int n) {
    for (int i = 0; i < n; i++) {
        float x = -width * distance[i], bounded = x > -drift_far ? x : -drift_far;
        float shifted = bounded * 1.44269504f + 12582912.0f, whole = shifted - 12582912.0f; /* rounds */
        float r = (bounded - whole * 0.693145752f) - whole * 1.42860677e-6f;
        float sum = 1.0f + r * (1.0f / 7);
        union { float real; int32_t bits; } power, exponent;
        sum = 1.0f + r * (1.0f / 6) * sum;
        sum = 1.0f + r * (1.0f / 5) * sum;
        sum = 1.0f + r * (1.0f / 4) * sum;
        sum = 1.0f + r * (1.0f / 3) * sum;
        sum = 1.0f + r * 0.5f * sum;
        sum = 1.0f + r * sum;
        exponent.real = shifted;
        power.bits = (int32_t)((uint32_t)(exponent.bits + 127) << 23);
        out[i] = x > -drift_far ? sum * power.real : 0.0f;
    }
}

DRIFT_CLONES static void drift_eighths(float *__restrict out, const float *__restrict base, int n) {
    for (int i = 0; i < n; i++) {
        float value = base[i] > drift_far_eighth ? base[i] : 0.0f, second = value * value, fourth = second * second;
        out[i] = fourth * fourth;
    }
}

/* Sums of coefficients times kernel values, for experts of the same kernel: four at a time, or one. With an array for
   each expert, and indices that cannot wrap, compilers keep the sums in registers. */
DRIFT_CLONES static void drift_four_sums(double *out, const float *__restrict rows, const float *__restrict kernel,
                                        size_t stride, size_t n) {
    const float *__restrict second = rows + stride, *__restrict third = second + stride, *__restrict fourth = third + stride;
    float a[DRIFT_LANES] = {0}, b[DRIFT_LANES] = {0}, c[DRIFT_LANES] = {0}, d[DRIFT_LANES] = {0};
    for (size_t first = 0; first < n; first += DRIFT_LANES)
        for (size_t lane = 0; lane < DRIFT_LANES; lane++) {
            float value = kernel[first + lane];
            a[lane] += rows[first + lane] * value;
            b[lane] += second[first + lane] * value;
            c[lane] += third[first + lane] * value;
            d[lane] += fourth[first + lane] * value;
        }
    for (size_t half = DRIFT_LANES / 2; half; half /= 2)
        for (size_t lane = 0; lane < half; lane++) {
            a[lane] += a[lane + half];
            b[lane] += b[lane + half];
            c[lane] += c[lane + half];
            d[lane] += d[lane + half];
        }
    out[0] = a[0], out[1] = b[0], out[2] = c[0], out[3] = d[0];
}

DRIFT_CLONES static double drift_one_sum(const float *__restrict row, const float *__restrict kernel, int n) {
    float sum[DRIFT_LANES] = {0};
    for (int first = 0; first < n; first += DRIFT_LANES)
        DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) sum[lane] += row[first + lane] * kernel[first + lane];
    for (int half = DRIFT_LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];
    return sum[0];
}

static void drift_expert_sums(double *out, const float *rows, const float *kernel, int count, size_t stride, int n) {
    int e = 0;
    for (; count - e >= 4; e += 4) drift_four_sums(out + e, rows + e * stride, kernel, stride, (size_t)n);
    for (; e < count; e++) out[e] = drift_one_sum(rows + e * stride, kernel, n);
}

/* What would be lost with each of the supports drawn: the sizes of its coefficients under the experts' `weights`, and
   under `trust` those of the sums that a gate makes of each kernel's. The last row may be about to be doubled. */
DRIFT_CLONES static void drift_costs(double *__restrict cost, const float *__restrict rows, size_t stride, const int32_t *__restrict slots,
                                    const double *__restrict squared, const double *__restrict widths, int n_kernels,
                                    const double *__restrict factors, int n_experts, const double *__restrict weights,
                                    const double *__restrict gate, double trust, int n_rows, int doubled) {
    double size[DRIFT_DRAWS], sum[DRIFT_DRAWS];
    int per_kernel = n_experts / n_kernels;
    memset(cost, 0, sizeof size);
    for (int k = 0; k < n_kernels; k++) {
        memset(size, 0, sizeof size);
        for (int r = 0; r < n_rows; r++) {
            double times = doubled && r == n_rows - 1 ? 2.0 : 1.0;
            memset(sum, 0, sizeof sum);
            for (int e = k * per_kernel; e < (k + 1) * per_kernel; e++) {
                const float *__restrict row = rows + ((size_t)r * n_experts + e) * stride;
                double own = times * weights[e] * factors[e], share = gate[e] * factors[e];
                for (int d = 0; d < DRIFT_DRAWS; d++) {
                    double coefficient = row[slots[d]];
                    size[d] += own * fabs(coefficient);
                    sum[d] += share * coefficient;
                }
            }
            for (int d = 0; d < DRIFT_DRAWS; d++) size[d] += times * trust * fabs(sum[d]);
        }
        for (int d = 0; d < DRIFT_DRAWS; d++) cost[d] += size[d] * (widths[k] == 0.0 ? sqrt(squared[slots[d]]) : 1.0);
    }
}

/* A kernel between three supports and themselves, from their inner products and squared norms: what of
   the first one's coefficients the other two get, where it is projected onto them. */
static void drift_project(double width, const double dots[3][3], double share[2]) {
    static const int pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    double k[3], jj, ll, det; /* of the first with the second, with the third, and of those two */
    for (int c = 0; c < 3; c++) {
        int a = pairs[c][0], b = pairs[c][1];
        double sum = dots[a][a] + dots[b][b], d = sum - 2.0 * dots[a][b];
        k[c] = width == 0.0 ? dots[a][b] : exp(-width * (d > DRIFT_TIE * sum ? d : 0.0));
    }
    jj = (width == 0.0 ? dots[1][1] : 1.0) * 1.001 + 1e-4;
    ll = (width == 0.0 ? dots[2][2] : 1.0) * 1.001 + 1e-4;
    det = jj * ll - k[2] * k[2];
    share[0] = (k[0] * ll - k[1] * k[2]) / det;
    share[1] = (k[1] * jj - k[0] * k[2]) / det;
}

/* --- linear experts ------------------------------------------------------------------------------ */

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
