/* Kernel values by slot, and the scores that they give. columns_scores.pxi calls these functions.

   They start from the inner products of stored values (`dots`, from columns.h). Arrays have an item by slot, and `n`
   is the number of slots, a multiple of DRIFT_LANES. What starts with `point_` is the same of the point.

   Each slot is computed separately. Sums over slots have a fixed number of lanes. So the vector width never changes a
   bit of the result. Included once per precision of the inner products: what is below the guard exists twice. */

#ifndef DRIFT_SCORES_H
#define DRIFT_SCORES_H

#include <math.h>

#include "portable.h"

enum { DRIFT_LINEAR = 0, DRIFT_POLYNOMIAL = 1, DRIFT_RBF = 2, DRIFT_CUSTOM = 3 };

/* A sum over slots in fixed lanes. A result within `error_bound`, `relative_tolerance` times the sum of its
   terms' magnitudes, counts as a tie and is returned as 0. POINTERS declares pointers to the block of slots
   from `first` on, KERNEL is the kernel value in one of its lanes. The macro uses `coefficients`, `n`,
   `relative_tolerance` and `error_bound` of the function around it, and returns from that function. */
#define DRIFT_SUM(POINTERS, KERNEL)                                                                 \
    do {                                                                                            \
        double sum[DRIFT_LANES] = {0}, magnitude[DRIFT_LANES] = {0};                                \
        for (int first = 0; first < n; first += DRIFT_LANES) {                                      \
            const double *__restrict coefficient = coefficients + first;                            \
            POINTERS;                                                                               \
            DRIFT_ROLLED for (int lane = 0; lane < DRIFT_LANES; lane++) {                           \
                double term = coefficient[lane] * (KERNEL);                                         \
                sum[lane] += term;                                                                  \
                magnitude[lane] += fabs(term);                                                      \
            }                                                                                       \
        }                                                                                           \
        for (int half = DRIFT_LANES / 2; half; half /= 2)                                           \
            for (int lane = 0; lane < half; lane++) {                                               \
                sum[lane] += sum[lane + half];                                                      \
                magnitude[lane] += magnitude[lane + half];                                          \
            }                                                                                       \
        *error_bound = relative_tolerance * magnitude[0];                                           \
        return fabs(sum[0]) <= *error_bound ? 0.0 : sum[0];                                         \
    } while (0)

DRIFT_CLONES static double drift_score_of_kernels(const double *coefficients, const double *kernels, int n,
                                                  double relative_tolerance, double *error_bound) {
    DRIFT_SUM(const double *__restrict k = kernels + first, k[lane]);
}

static inline double drift_power(double base, int degree) {
    double power = 1.0;
    for (;; base *= base) {
        if (degree & 1) power *= base;
        if (!(degree >>= 1)) return power;
    }
}

/* The same for a constant degree below 32: no loop, so that it vectorises. */
static inline double drift_short_power(double base, int degree) {
    double second = base * base, fourth = second * second, eighth = fourth * fourth, power = 1.0;
    if (degree & 1) power *= base;
    if (degree & 2) power *= second;
    if (degree & 4) power *= fourth;
    if (degree & 8) power *= eighth;
    if (degree & 16) power *= eighth * eighth;
    return power;
}

/* Degrees with a specialised loop. */
#define DRIFT_DEGREES(CASE)                                                                         \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)       \
    CASE(12) CASE(13) CASE(14) CASE(15) CASE(16)

/* kernels = (kernels + constant * cosine factor) ** degree, where `kernels` are inner products before. `constant` is
   coef0 times the point's cosine factor. */
DRIFT_CLONES static void drift_polynomial(double *__restrict kernels, const double *__restrict cosine_factors,
                                         double constant, int n, int degree) {
#define DRIFT_CASE(d)                                                                               \
    case d:                                                                                         \
        for (int i = 0; i < n; i++)                                                                 \
            kernels[i] = drift_short_power(kernels[i] + constant * cosine_factors[i], d);           \
        break;
    switch (degree) {
        DRIFT_DEGREES(DRIFT_CASE)
        default:
            for (int i = 0; i < n; i++) kernels[i] = drift_power(kernels[i] + constant * cosine_factors[i], degree);
    }
#undef DRIFT_CASE
}

/* Ratios of the projections of the point onto the supports: kernels / self-kernels, 0 where a self-kernel is not
   positive. `ratios` has the self-kernels before, k(x, x) of each support. */
DRIFT_CLONES static void drift_ratios(double *__restrict ratios, const double *__restrict kernels, int n) {
    for (int i = 0; i < n; i++) {
        int positive = ratios[i] > 0.0;
        double ratio = kernels[i] / (positive ? ratios[i] : 1.0);
        ratios[i] = positive ? ratio : 0.0;
    }
}

/* kernels = exp(-gamma * squared distance), where `kernels` are inner products before.

   exp(x) for x <= 0 is 2**n * exp(r) with |r| <= ln(2) / 2 and a Taylor polynomial of `terms` terms;
   8 leave a relative error below 6e-9, 14 one below 1e-16. Below -708 the result is 0. */
#define DRIFT_RBF_KERNELS(terms)                                                                    \
    for (int i = 0; i < n; i++) {                                                                   \
        double squared_distance = squared_norms[i] + point_squared_norm - 2.0 * kernels[i];         \
        double x = -gamma * (squared_distance > 0.0 ? squared_distance : 0.0);                      \
        double bounded = x > -708.0 ? x : -708.0;                                                   \
        double shifted = bounded * 1.4426950408889634 + 6755399441055744.0; /* rounds to an integer */ \
        double whole = shifted - 6755399441055744.0;                                                \
        double r = (bounded - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10; \
        double sum = 1.0;                                                                           \
        for (int k = terms - 1; k > 0; k--) sum = 1.0 + sum * r * reciprocals[k];                   \
        union { double real; int64_t bits; } power, exponent;                                       \
        exponent.real = shifted;                                                                    \
        power.bits = (int64_t)((uint64_t)(exponent.bits + 1023) << 52);                             \
        kernels[i] = x > -708.0 ? sum * power.real : 0.0;                                           \
    }

static const double reciprocals[14] = {0,       1.0,     1.0 / 2, 1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,
                                       1.0 / 7, 1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13};

DRIFT_CLONES static void drift_rbf_float(double *kernels, const double *squared_norms,
                                         double point_squared_norm, double gamma, int n) {
    DRIFT_RBF_KERNELS(8)
}

DRIFT_CLONES static void drift_rbf_double(double *kernels, const double *squared_norms,
                                          double point_squared_norm, double gamma, int n) {
    DRIFT_RBF_KERNELS(14)
}

#endif

/* kernels[slot] = <support in slot, point>, from the inner products of their stored values. */
DRIFT_CLONES static void DRIFT_NAME(drift_inner_products)(double *__restrict kernels, const REAL *__restrict dots,
                                                        const double *__restrict dot_factors, double point_dot_factor,
                                                        int n) {
    for (int i = 0; i < n; i++) kernels[i] = (double)dots[i] * (dot_factors[i] * point_dot_factor);
}

/* Score under the kernel (<support, point> + constant * cosine factor) ** degree, in one pass; the linear kernel is
   degree 1 with the constant 0. */
DRIFT_CLONES static double DRIFT_NAME(drift_score)(const double *coefficients, const REAL *dots,
                                                  const double *dot_factors, double point_dot_factor,
                                                  const double *cosine_factors, double constant, int n, int degree,
                                                  double relative_tolerance, double *error_bound) {
#define DRIFT_POINTERS                                                                              \
    const REAL *__restrict dot = dots + first;                                                      \
    const double *__restrict factor = dot_factors + first, *__restrict cosine = cosine_factors + first
#define DRIFT_BASE ((double)dot[lane] * (factor[lane] * point_dot_factor) + constant * cosine[lane])
#define DRIFT_CASE(d) case d: DRIFT_SUM(DRIFT_POINTERS, drift_short_power(DRIFT_BASE, d));
    switch (degree) {
        DRIFT_DEGREES(DRIFT_CASE)
        default: DRIFT_SUM(DRIFT_POINTERS, drift_power(DRIFT_BASE, degree));
    }
#undef DRIFT_POINTERS
#undef DRIFT_BASE
#undef DRIFT_CASE
}
