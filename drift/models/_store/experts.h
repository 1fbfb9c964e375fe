/* The tracker's experts over the supports: kernels of many widths from one row of inner products, and the
   coefficients of all experts over it.

   Slots come in multiples of the lanes; every sum over slots has a fixed number of them. */

#ifndef DRIFT_EXPERTS_H
#define DRIFT_EXPERTS_H

enum { DRIFT_DRAWS = 16 };

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

#endif
