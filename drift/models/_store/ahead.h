/* Rows of a batch against tiles of supports, see _ahead.py. All of it is float32 or a bound: what it
   decides, it decides beyond any rounding. */

#ifndef DRIFT_AHEAD_H
#define DRIFT_AHEAD_H

#define DRIFT_TILE 32 /* supports side by side: with their features they fit into a fast cache */
#define DRIFT_AT_ONCE 8 /* features added up in pairs; rows have a multiple of them */

/* out[lane] = <row, support in that lane>. */
DRIFT_CLONES static void drift_tile_dots(float *__restrict out, const float *__restrict tile,
                                         const int32_t *__restrict ids, const float *__restrict values, int count) {
    float sum[DRIFT_TILE] = {0};
    for (int t = 0; t < count; t += DRIFT_AT_ONCE) {
        const float *__restrict c[DRIFT_AT_ONCE];
        float u[DRIFT_AT_ONCE];
        for (int k = 0; k < DRIFT_AT_ONCE; k++) {
            c[k] = tile + (size_t)ids[t + k] * DRIFT_TILE;
            u[k] = values[t + k];
        }
        for (int i = 0; i < DRIFT_TILE; i++)
            sum[i] += ((u[0] * c[0][i] + u[1] * c[1][i]) + (u[2] * c[2][i] + u[3] * c[3][i])) +
                      ((u[4] * c[4][i] + u[5] * c[5][i]) + (u[6] * c[6][i] + u[7] * c[7][i]));
    }
    memcpy(out, sum, sizeof sum);
}

/* A column of the store into the lines of one feature, `stride` floats from tile to tile. */
#define DRIFT_INTO_TILES(real)                                                                      \
    static void drift_into_tiles_##real(DriftColumn *c, float *lines, size_t stride, int n) {       \
        if (drift_is_dense(c)) {                                                                    \
            const real *values = (const real *)c->block;                                            \
            for (int s = 0; s < n; s++)                                                             \
                lines[s / DRIFT_TILE * stride + s % DRIFT_TILE] = (float)values[s];                 \
            return;                                                                                 \
        }                                                                                           \
        const DriftCell_##real *cells = drift_cells_##real(c);                                      \
        for (int e = 0; e < c->size; e++)                                                           \
            lines[cells[e].slot / DRIFT_TILE * stride + cells[e].slot % DRIFT_TILE] =               \
                (float)cells[e].value;                                                              \
    }
DRIFT_INTO_TILES(float)
DRIFT_INTO_TILES(double)
#undef DRIFT_INTO_TILES

/* Kernel values (<a, b> + c * share) ** degree from inner products that are off by `error` of the norms, and
   how far off each may be; `rounding` is the share of a value by which anything else may be. */
DRIFT_CLONES static void drift_rough_polynomial(double *__restrict row, double *__restrict errors,
                                                const float *__restrict dots, const double *__restrict scale,
                                                double point, const double *__restrict share, double c, int n,
                                                int degree, double error, double rounding) {
#define DRIFT_ROUGH(POWER, d)                                                                       \
    for (int i = 0; i < n; i++) {                                                                   \
        double s = scale[i] * point, base = (double)dots[i] * s + c * share[i], off = error * s;    \
        double largest = fabs(base) + off;                                                          \
        errors[i] = POWER(largest, d - 1) * (degree * off + rounding * largest);                    \
        row[i] = POWER(base, d);                                                                    \
    }
#define DRIFT_CASE(d)                                                                               \
    case d: DRIFT_ROUGH(drift_short_power, d) break;
    switch (degree) {
        DRIFT_DEGREES(DRIFT_CASE)
        default: DRIFT_ROUGH(drift_power, degree)
    }
#undef DRIFT_CASE
#undef DRIFT_ROUGH
}

/* The same for exp(-gamma |a - b|^2); right where gamma * off is small. */
DRIFT_CLONES static void drift_rough_rbf(double *__restrict row, double *__restrict errors,
                                         const double *__restrict scale, double point, int n, double gamma,
                                         double error, double rounding) {
    for (int i = 0; i < n; i++) {
        double off = 2.0 * gamma * error * scale[i] * point;
        errors[i] = row[i] * (off < 0.1 ? 1.1 * off + rounding : INFINITY);
    }
}

/* Scores under several classes, and how far off each may be. */
DRIFT_CLONES static void drift_rough_score(const double *__restrict weight, const double *__restrict row,
                                           const double *__restrict errors, int n, double *score, double *off) {
    double sum[DRIFT_LANES] = {0}, size[DRIFT_LANES] = {0};
    for (int first = 0; first < n; first += DRIFT_LANES)
        for (int lane = 0; lane < DRIFT_LANES; lane++) {
            double w = weight[first + lane];
            sum[lane] += w * row[first + lane];
            size[lane] += fabs(w) * errors[first + lane];
        }
    for (int lane = 1; lane < DRIFT_LANES; lane++) {
        sum[0] += sum[lane];
        size[0] += size[lane];
    }
    *score = sum[0];
    *off = size[0];
}

#endif
