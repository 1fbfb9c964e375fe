/* Kernel members: one row of inner products gives kernels of several widths, over which each member has coefficients. Slots
   are padded to multiples of the lanes, so that every sum has a fixed order. */

#ifndef DRIFT_KERNELS_H
#define DRIFT_KERNELS_H

static void drift_kernels_split(DriftTracker *t) { drift_split(t->coefficients, (size_t)t->kernel_members * t->slots, 1, 1); }

/* A squared distance from an inner product; 0 within rounding. */
static DRIFT_INLINE double drift_distance(double squared, double other, double dot) {
    double sum = squared + other, d = sum - 2.0 * dot;
    return d > 1e-6 * sum ? d : 0.0;
}

DRIFT_CLONES static void drift_distances(float *__restrict distance, const double *__restrict dots, const double *__restrict squared,
                                        double squared_norm, int n) {
    for (int i = 0; i < n; i++) distance[i] = (float)drift_distance(squared[i], squared_norm, dots[i]);
}

DRIFT_CLONES static void drift_to_floats(float *__restrict out, const double *__restrict values, int n) {
    for (int i = 0; i < n; i++) out[i] = (float)values[i];
}

/* Kernels below exp(-40) and tiny coefficients are flushed to 0: their products would be denormal, which costs some processors
   a hundred cycles each. */
static const float drift_farthest = 40.0f;

static inline float drift_flushed(double coefficient) { return fabs(coefficient) > 1e-20 ? drift_float(coefficient) : 0.0f; }

/* exp(-width * distance), to a few units in the last place. */
DRIFT_CLONES static void drift_gaussians(float *__restrict out, const float *__restrict distance, float width, int n) {
    for (int i = 0; i < n; i++) {
        float x = -width * distance[i], bounded = x > -drift_farthest ? x : -drift_farthest;
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
        out[i] = x > -drift_farthest ? sum * power.real : 0.0f;
    }
}

/* Sums of coefficients times kernel values, for members of the same kernel: four at a time, or one. With an array for
   each member, and indices that cannot wrap, compilers keep the sums in registers. */
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

static void drift_kernel_sums(double *out, const float *rows, const float *kernel, int count, size_t stride, int n) {
    int e = 0;
    for (; count - e >= 4; e += 4) drift_four_sums(out + e, rows + e * stride, kernel, stride, (size_t)n);
    for (; e < count; e++) out[e] = drift_one_sum(rows + e * stride, kernel, n);
}

static inline float *drift_coefficients(const DriftTracker *t, int row, int member) {
    return t->coefficients + ((size_t)row * t->kernel_members + member) * t->slots;
}

static void drift_kernels_scores(DriftTracker *t, double *scores) {
    int n = t->n_used, per_kernel = t->kernel_members / t->kernels;
    n = (n + DRIFT_LANES - 1) / DRIFT_LANES * DRIFT_LANES;
    if (n) drift_supports_dots(&t->supports, t->numbers, t->values, t->n_values, t->dots);
    drift_distances(t->distances, t->dots, t->squared, t->squared_norm, n);
    for (int k = 0; k < t->kernels; k++) {
        float *values = t->kernel_values + (size_t)k * t->slots;
        if (t->widths[k] == 0.0)
            drift_to_floats(values, t->dots, n);
        else
            drift_gaussians(values, t->distances, (float)t->widths[k], n);
    }
    for (int r = 0; r < t->n_rows; r++) {
        double *row = scores + (size_t)r * t->members;
        for (int k = 0; k < t->kernels; k++)
            drift_kernel_sums(row + k * per_kernel, drift_coefficients(t, r, k * per_kernel), t->kernel_values + (size_t)k * t->slots,
                              per_kernel, (size_t)t->slots, n);
        for (int e = 0; e < t->kernel_members; e++) row[e] *= t->factors[e];
    }
}

/* Cost of evicting each support drawn: the change of the first gate's score, summed over kernels. */
DRIFT_CLONES static void drift_costs(double *__restrict cost, const DriftTracker *t, const int32_t *__restrict slots) {
    double sum[DRIFT_DRAWS], size[DRIFT_DRAWS];
    int per_kernel = t->kernel_members / t->kernels;
    memset(cost, 0, DRIFT_DRAWS * sizeof *cost);
    for (int k = 0; k < t->kernels; k++) {
        memset(size, 0, sizeof size);
        for (int r = 0; r < t->n_rows; r++) {
            memset(sum, 0, sizeof sum);
            for (int e = k * per_kernel; e < (k + 1) * per_kernel; e++) {
                const float *__restrict row = drift_coefficients(t, r, e);
                double weight = t->gates[e] * t->factors[e];
                for (int d = 0; d < DRIFT_DRAWS; d++) sum[d] += weight * (double)row[slots[d]];
            }
            for (int d = 0; d < DRIFT_DRAWS; d++) size[d] += fabs(sum[d]);
        }
        for (int d = 0; d < DRIFT_DRAWS; d++) cost[d] += size[d] * (t->widths[k] == 0.0 ? sqrt(t->squared[slots[d]]) : 1.0);
    }
}

/* Draw supports, choose the cheapest for eviction, and find its nearest neighbour; the first of equals. `free` is the free
   slot, or -1. `dots` gets the inner products of the evicted one. Returns the state of the draws. */
static uint64_t drift_choose_evicted(DriftTracker *t, int free, int32_t *numbers, double *values) {
    int32_t slots[DRIFT_DRAWS];
    double cost[DRIFT_DRAWS], least = INFINITY;
    uint64_t draws = t->draws;
    int live = t->n_used - (free >= 0), cheapest = 0;
    for (int d = 0; d < DRIFT_DRAWS; d++) {
        int32_t slot = drift_draw(&draws, live);
        slots[d] = slot + (free >= 0 && slot >= free);
    }
    drift_costs(cost, t, slots);
    for (int d = 1; d < DRIFT_DRAWS; d++)
        if (cost[d] < cost[cheapest]) cheapest = d;
    t->evicted = slots[cheapest];
    t->nearest = -1;
    drift_supports_read(&t->supports, t->evicted, numbers, values);
    drift_supports_dots(&t->supports, numbers, values, t->supports.sizes[t->evicted], t->dots);
    for (int i = 0; i < t->n_used; i++) {
        double d = drift_distance(t->squared[i], t->squared[t->evicted], t->dots[i]);
        if (i == t->evicted || i == free || d >= least) continue;
        least = d;
        t->nearest = i;
    }
    return draws;
}

/* Add the evicted support's coefficients, times the kernel of the two, to its neighbour's, and empty its slot. */
static void drift_merge(DriftTracker *t) {
    int per_kernel = t->kernel_members / t->kernels, from = t->evicted, to = t->nearest;
    for (int e = 0; e < t->kernel_members; e++) {
        double width = t->widths[e / per_kernel], share = 0.0;
        if (to >= 0 && width == 0.0)
            share = t->dots[to] / (t->squared[to] > 1e-6 ? t->squared[to] : 1e-6);
        else if (to >= 0)
            share = exp(-width * drift_distance(t->squared[to], t->squared[from], t->dots[to]));
        for (int r = 0; r < t->n_rows; r++) {
            float *row = drift_coefficients(t, r, e);
            if (to >= 0) row[to] = drift_flushed(row[to] + share * row[from]);
            row[from] = 0.0f;
        }
    }
    drift_supports_drop(&t->supports, from, t->supports.sizes[from]);
    t->squared[from] = 0.0;
}

/* Set a new support's coefficients: a gradient step of each member. */
static void drift_kernels_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (t->inserted < 0) return;
    if (t->evicted >= 0) drift_merge(t);
    t->squared[t->inserted] = t->squared_norm;
    for (int e = 0; e < t->kernel_members; e++) {
        double factor = t->factors[e] *= t->retention[e];
        for (int r = 0; r < t->n_rows; r++) {
            float *row = drift_coefficients(t, r, e);
            for (int i = 0; factor < 1e-6 && i < t->slots; i++) row[i] = drift_flushed(row[i] * (float)factor);
            row[t->inserted] = drift_flushed(w * t->rates[e] * drift_gradient(t, first + e, r, number) / (factor < 1e-6 ? 1.0 : factor));
        }
        if (factor < 1e-6) t->factors[e] = 1.0;
    }
}

#endif
