/* The arithmetic of the column store, once per precision: this file is included with REAL set.

   Every loop treats each slot by itself, in the order of the columns, and the one sum over slots has
   a fixed number of lanes: the vector width changes the speed and never a bit of the result. */

#ifndef DRIFT_COLUMNS_H
#define DRIFT_COLUMNS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef DRIFT_CLONES /* -DDRIFT_CLONES= builds for the baseline alone */
#elif defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define DRIFT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DRIFT_CLONES
#endif
#if defined(__GNUC__)
#define DRIFT_PREFETCH(p) __builtin_prefetch(p)
#else
#define DRIFT_PREFETCH(p) ((void)(p))
#endif

/* Blocks that vectors run over start on a cache line. */
#ifdef _WIN32
#include <malloc.h>
#define drift_free(p) _aligned_free(p)
#else
#define drift_free(p) free(p)
#endif

/* Grow a block of `before` bytes to `after`, zeroed; NULL, the old block untouched, without memory. */
static inline void *drift_grow(void *old, size_t before, size_t after) {
#ifdef _WIN32
    void *block = _aligned_malloc(after, 64);
    if (!block) return NULL;
#else
    void *block;
    if (posix_memalign(&block, 64, after)) return NULL;
#endif
    if (before) memcpy(block, old, before);
    memset((char *)block + before, 0, after - before);
    drift_free(old);
    return block;
}

#define DRIFT_LANES 16 /* slots come in multiples of this, so that no loop over slots has a tail */

enum { DRIFT_LINEAR = 0, DRIFT_POLYNOMIAL = 1, DRIFT_RBF = 2, DRIFT_CUSTOM = 3 };

typedef struct {
    int32_t slot;
    float value;
} DriftCell_float;

typedef struct {
    int32_t slot;
    double value;
} DriftCell_double;

/* One feature's values over the slots. Sparse: `size` cells in a block with room for `room`; a single
   small cell lies in the column itself (room == 1), as most features have only one. Dense (room == 0
   and a block): one real per slot of the store. */
typedef struct {
    union {
        void *block;
        DriftCell_float one;
    };
    int32_t size;
    int32_t room;
} DriftColumn;

static inline DriftCell_float *drift_cells_float(DriftColumn *c) {
    return c->room == 1 ? &c->one : (DriftCell_float *)c->block;
}

static inline DriftCell_double *drift_cells_double(DriftColumn *c) { return (DriftCell_double *)c->block; }

static inline int drift_is_dense(const DriftColumn *c) { return c->room == 0 && c->block; }

static inline void drift_clear(DriftColumn *c) {
    if (drift_is_dense(c))
        drift_free(c->block);
    else if (c->room != 1)
        free(c->block);
    memset(c, 0, sizeof *c);
}

/* A sparse column's cells come from the second-level cache or beyond: ask for them in time. */
static inline void drift_prefetch_head(const DriftColumn *c) {
    DRIFT_PREFETCH(c->room == 1 ? (const void *)c : c->block);
}

static inline void drift_prefetch_rest(const DriftColumn *c, int cell) {
    int bytes = c->room > 1 ? c->size * cell : 0;
    for (int line = 64; line < bytes; line += 64) DRIFT_PREFETCH((const char *)c->block + line);
}

/* A sum over slots in fixed lanes. A result within `rounding`, a share `tie` of its terms' sizes, is
   the tie that exact arithmetic would give, and is returned as 0. ROW declares pointers to
   the block that starts at slot `first`, KERNEL is the kernel's value in a lane of it. */
#define DRIFT_SUM(ROW, KERNEL)                                                                      \
    do {                                                                                            \
        double sum[DRIFT_LANES] = {0}, size[DRIFT_LANES] = {0};                                     \
        for (int first = 0; first < n; first += DRIFT_LANES) {                                      \
            const double *restrict w = weight + first;                                              \
            ROW;                                                                                    \
            for (int lane = 0; lane < DRIFT_LANES; lane++) {                                        \
                double term = w[lane] * (KERNEL);                                                   \
                sum[lane] += term;                                                                  \
                size[lane] += fabs(term);                                                           \
            }                                                                                       \
        }                                                                                           \
        for (int half = DRIFT_LANES / 2; half; half /= 2)                                           \
            for (int lane = 0; lane < half; lane++) {                                               \
                sum[lane] += sum[lane + half];                                                      \
                size[lane] += size[lane + half];                                                    \
            }                                                                                       \
        *rounding = tie * size[0];                                                                  \
        return fabs(sum[0]) <= *rounding ? 0.0 : sum[0];                                            \
    } while (0)

DRIFT_CLONES static double drift_weighted_sum(const double *weight, const double *row, int n, double tie,
                                             double *rounding) {
    DRIFT_SUM(const double *restrict k = row + first, k[lane]);
}

static inline double drift_square(double x) { return x * x; }

static inline double drift_power(double base, int degree) {
    double power = 1.0;
    for (;; base *= base) {
        if (degree & 1) power *= base;
        if (!(degree >>= 1)) return power;
    }
}

/* The power of each lane, as `drift_power` has it. */
static inline void drift_powers(double *restrict lanes, int degree) {
    double power[DRIFT_LANES];
    for (int lane = 0; lane < DRIFT_LANES; lane++) power[lane] = 1.0;
    for (;;) {
        if (degree & 1)
            for (int lane = 0; lane < DRIFT_LANES; lane++) power[lane] *= lanes[lane];
        if (!(degree >>= 1)) break;
        for (int lane = 0; lane < DRIFT_LANES; lane++) lanes[lane] *= lanes[lane];
    }
    memcpy(lanes, power, sizeof power);
}

/* row = (row + c) ** degree. */
DRIFT_CLONES static void drift_polynomial(double *row, int n, double c, int degree) {
    for (int first = 0; first < n; first += DRIFT_LANES) {
        for (int lane = 0; lane < DRIFT_LANES; lane++) row[first + lane] += c;
        drift_powers(row + first, degree);
    }
}

/* Bound on what an error of one in every inner product does to a score under (<a, b> + c) ** degree,
   as long as that is no larger than `error`. */
DRIFT_CLONES static double drift_slope(const double *weight, const float *dots, const double *scale,
                                      double point, int n, double c, int degree, double error) {
    double sum[DRIFT_LANES] = {0};
    for (int first = 0; first < n; first += DRIFT_LANES)
        for (int lane = 0; lane < DRIFT_LANES; lane++) {
            double s = scale[first + lane] * point;
            double base = fabs(dots[first + lane] * s + c) + error * s, power = 1.0;
            for (int k = 1; k < degree; k++) power *= base;
            sum[lane] += fabs(weight[first + lane]) * power * s;
        }
    for (int lane = 1; lane < DRIFT_LANES; lane++) sum[0] += sum[lane];
    return degree * sum[0];
}

/* A column of floats into a zeroed line with a place for each slot. */
static void drift_spread(const DriftColumn *c, float *line, int n) {
    const DriftCell_float *cells = c->room == 1 ? &c->one : (const DriftCell_float *)c->block;
    if (drift_is_dense(c)) {
        memcpy(line, c->block, (size_t)n * sizeof *line);
        return;
    }
    for (int e = 0; e < c->size; e++) line[cells[e].slot] = cells[e].value;
}

/* exp(x) for x <= 0: 2**n * exp(r) with |r| <= ln(2) / 2 and a Taylor polynomial of `terms` terms;
   8 leave a relative error below 6e-9, 14 one below 1e-16. Below -708 the result is 0. */
#define DRIFT_EXP(terms)                                                                            \
    for (int i = 0; i < n; i++) {                                                                   \
        double d = squared[i] + point - 2.0 * row[i];                                               \
        double x = -gamma * (d > 0.0 ? d : 0.0);                                                    \
        double bounded = x > -708.0 ? x : -708.0;                                                   \
        double shifted = bounded * 1.4426950408889634 + 0x1.8p52; /* rounds to an integer */        \
        double whole = shifted - 0x1.8p52;                                                          \
        double r = (bounded - whole * 0x1.62e42feep-1) - whole * 0x1.a39ef35793c76p-33;             \
        double sum = 1.0;                                                                           \
        for (int k = terms - 1; k > 0; k--) sum = 1.0 + sum * r * inverse[k];                       \
        union { double real; int64_t bits; } power, exponent;                                       \
        exponent.real = shifted;                                                                    \
        power.bits = (int64_t)((uint64_t)(exponent.bits + 1023) << 52);                             \
        row[i] = x > -708.0 ? sum * power.real : 0.0;                                               \
    }

static const double inverse[14] = {0,       1.0,     1.0 / 2, 1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,
                                   1.0 / 7, 1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13};

DRIFT_CLONES static void drift_rbf(double *row, const double *squared, double point, double gamma, int n) {
    DRIFT_EXP(8)
}

DRIFT_CLONES static void drift_rbf_exact(double *row, const double *squared, double point, double gamma, int n) {
    DRIFT_EXP(14)
}

/* Order of the columns `ids` as positions into them, by digits from the lowest: as few as there can
   be of at most 8 bits, and those as short as that allows. */
static void drift_sort(uint64_t *keys, uint64_t *spare, int n, uint32_t largest) {
    int bits = 1, passes, digit;
    while (bits < 32 && largest >> bits) bits++;
    passes = (bits + 7) / 8;
    digit = (bits + passes - 1) / passes;
    for (int shift = 32; passes--; shift += digit) {
        int start[257] = {0}, base = 1 << digit;
        for (int i = 0; i < n; i++) start[((keys[i] >> shift) & (base - 1)) + 1]++;
        for (int b = 0; b < base; b++) start[b + 1] += start[b];
        for (int i = 0; i < n; i++) spare[start[(keys[i] >> shift) & (base - 1)]++] = keys[i];
        memcpy(keys, spare, (size_t)n * sizeof *keys);
    }
}

#endif

#define DRIFT_JOIN2(a, b) a##_##b
#define DRIFT_JOIN(a, b) DRIFT_JOIN2(a, b)
#define DRIFT_NAME(name) DRIFT_JOIN(name, REAL)

#define DRIFT_CELL DRIFT_NAME(DriftCell)
#define DRIFT_CELLS DRIFT_NAME(drift_cells)

/* Many dense columns come sixteen, eight or four at a time, added up in pairs: fewer passes over the
   row, and a shorter chain of roundings. */
#define DRIFT_MANY 64
#define DRIFT_TWO(k) (u[k] * c[k][i] + u[(k) + 1] * c[(k) + 1][i])
#define DRIFT_FOUR(k) (DRIFT_TWO(k) + DRIFT_TWO((k) + 2))
#define DRIFT_EIGHT(k) (DRIFT_FOUR(k) + DRIFT_FOUR((k) + 4))
#define DRIFT_AXPY(name, count, SUM)                                                                \
    DRIFT_CLONES static void DRIFT_NAME(name)(REAL *restrict acc, const REAL *const *columns,      \
                                              const REAL *weights, int n) {                         \
        const REAL *c[count];                                                                       \
        REAL u[count];                                                                              \
        for (int k = 0; k < count; k++) {                                                           \
            c[k] = columns[k];                                                                      \
            u[k] = weights[k];                                                                      \
        }                                                                                           \
        for (int i = 0; i < n; i++) acc[i] += SUM;                                                  \
    }
DRIFT_AXPY(drift_axpy16, 16, DRIFT_EIGHT(0) + DRIFT_EIGHT(8))
DRIFT_AXPY(drift_axpy8, 8, DRIFT_EIGHT(0))
DRIFT_AXPY(drift_axpy4, 4, DRIFT_FOUR(0))
#undef DRIFT_AXPY
#undef DRIFT_EIGHT
#undef DRIFT_FOUR
#undef DRIFT_TWO

/* Few dense columns: four at a time, added one by one. */
DRIFT_CLONES static void DRIFT_NAME(drift_axpy1)(REAL *restrict acc, const REAL *const *c, const REAL *u, int n) {
    const REAL *restrict c0 = c[0], *restrict c1 = c[1], *restrict c2 = c[2], *restrict c3 = c[3];
    REAL u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    for (int i = 0; i < n; i++)
        acc[i] = (((acc[i] + u0 * c0[i]) + u1 * c1[i]) + u2 * c2[i]) + u3 * c3[i];
}

/* The dense columns that wait; there is room for sixteen. */
static void DRIFT_NAME(drift_flush)(REAL *acc, const REAL **dense, REAL *weight, int waiting, int many, int n) {
    int k;
    for (k = waiting; k & 3; k++) { /* nothing times a column at hand is nothing */
        dense[k] = dense[0];
        weight[k] = 0;
    }
    waiting = k;
    k = 0;
    if (!many)
        DRIFT_NAME(drift_axpy1)(acc, dense, weight, n);
    else if (waiting == 16)
        DRIFT_NAME(drift_axpy16)(acc, dense, weight, n);
    else {
        if (waiting >= 8) {
            DRIFT_NAME(drift_axpy8)(acc, dense, weight, n);
            k = 8;
        }
        if (waiting > k) DRIFT_NAME(drift_axpy4)(acc, dense + k, weight + k, n);
    }
}

DRIFT_CLONES static void DRIFT_NAME(drift_widen)(double *restrict row, const REAL *restrict acc,
                                                const double *restrict scale, double point, int n) {
    for (int i = 0; i < n; i++) row[i] = (double)acc[i] * (scale[i] * point);
}

/* Score under (<a, b> + c) ** degree; the linear kernel is degree 1 with c = 0. */
DRIFT_CLONES static double DRIFT_NAME(drift_score)(const double *weight, const REAL *acc, const double *scale,
                                                  double point, int n, double c, int degree, double tie,
                                                  double *rounding) {
#define DRIFT_ROW                                                                                   \
    const REAL *restrict a = acc + first;                                                           \
    const double *restrict s = scale + first
#define DRIFT_BASE ((double)a[lane] * (s[lane] * point) + c)
    switch (degree) {
        case 1: DRIFT_SUM(DRIFT_ROW, DRIFT_BASE);
        case 2: DRIFT_SUM(DRIFT_ROW, drift_square(DRIFT_BASE));
        case 3: DRIFT_SUM(DRIFT_ROW, DRIFT_BASE * drift_square(DRIFT_BASE));
        case 4: DRIFT_SUM(DRIFT_ROW, drift_square(drift_square(DRIFT_BASE)));
        default: DRIFT_SUM(DRIFT_ROW, drift_power(DRIFT_BASE, degree));
    }
#undef DRIFT_ROW
#undef DRIFT_BASE
}

/* A column's slots are all different, so four may be on their way at once. */
static inline void DRIFT_NAME(drift_scatter)(REAL *restrict acc, const DRIFT_CELL *restrict e, REAL u,
                                            int n) {
    for (; n >= 4; n -= 4, e += 4) {
        REAL a0 = acc[e[0].slot] + u * e[0].value, a1 = acc[e[1].slot] + u * e[1].value;
        REAL a2 = acc[e[2].slot] + u * e[2].value, a3 = acc[e[3].slot] + u * e[3].value;
        acc[e[0].slot] = a0;
        acc[e[1].slot] = a1;
        acc[e[2].slot] = a2;
        acc[e[3].slot] = a3;
    }
    for (; n > 0; n--, e++) acc[e->slot] += u * e->value;
}

/* acc[slot] = <support in slot, point>, for the point's sorted columns, both as scaled. */
static void DRIFT_NAME(drift_dots)(DriftColumn *columns, const int32_t *ids, const double *values, int count,
                                  void *work, int n) {
    REAL *acc = (REAL *)work;
    const REAL *dense[16];
    REAL weight[16];
    int waiting = 0, n_dense = 0, group;
    for (int t = 0; t < count; t++) {
        drift_prefetch_head(&columns[ids[t]]);
        n_dense += !columns[ids[t]].room;
    }
    group = n_dense >= DRIFT_MANY ? 16 : 4;
    memset(acc, 0, (size_t)n * sizeof(REAL));
    for (int t = 0; t < count; t++) {
        DriftColumn *c = &columns[ids[t]];
        if (n > 512 && t + 2 < count) drift_prefetch_rest(&columns[ids[t + 2]], sizeof(DRIFT_CELL));
        REAL u = (REAL)values[t];
        if (!c->room) {
            dense[waiting] = (const REAL *)c->block;
            weight[waiting++] = u;
            if (waiting == group) {
                DRIFT_NAME(drift_flush)(acc, dense, weight, waiting, group == 16, n);
                waiting = 0;
            }
        } else {
            DRIFT_NAME(drift_scatter)(acc, DRIFT_CELLS(c), u, c->size);
        }
    }
    if (waiting) DRIFT_NAME(drift_flush)(acc, dense, weight, waiting, group == 16, n);
}

static int DRIFT_NAME(drift_make_dense)(DriftColumn *c, int capacity) {
    const DRIFT_CELL *cell = DRIFT_CELLS(c);
    int32_t size = c->size;
    REAL *dense = (REAL *)drift_grow(NULL, 0, (size_t)capacity * sizeof(REAL));
    if (!dense) return -1;
    for (int e = 0; e < size; e++) dense[cell[e].slot] = cell[e].value;
    drift_clear(c);
    c->block = dense;
    c->size = size;
    return 0;
}

static int DRIFT_NAME(drift_make_sparse)(DriftColumn *c, int capacity) {
    REAL *dense = (REAL *)c->block;
    DRIFT_CELL *cell = (DRIFT_CELL *)malloc((size_t)(c->size + 2) * sizeof *cell);
    if (!cell) return -1;
    c->block = cell;
    c->room = c->size + 2;
    for (int s = 0; s < capacity; s++)
        if (dense[s] != 0) *cell++ = (DRIFT_CELL){s, dense[s]};
    drift_free(dense);
    return 0;
}

/* Write a non-zero value; a column with more than an eighth of the slots turns dense. -1 without
   memory, the column as it was. */
static int DRIFT_NAME(drift_put)(DriftColumn *c, int slot, double value, int capacity) {
    if (drift_is_dense(c)) {
        ((REAL *)c->block)[slot] = (REAL)value;
        c->size++;
        return 0;
    }
    if (c->size == c->room) {
        int room = c->room ? 2 * c->room : sizeof(DRIFT_CELL) > sizeof(void *) ? 2 : 1;
        if (room > 1) {
            DRIFT_CELL *block = (DRIFT_CELL *)malloc((size_t)room * sizeof *block);
            if (!block) return -1;
            if (c->size) memcpy(block, DRIFT_CELLS(c), (size_t)c->size * sizeof *block);
            if (c->room != 1) free(c->block);
            c->block = block;
        }
        c->room = room;
    }
    DRIFT_CELLS(c)[c->size++] = (DRIFT_CELL){slot, (REAL)value};
    return c->size > capacity / 8 ? DRIFT_NAME(drift_make_dense)(c, capacity) : 0;
}

/* A slot's cell in a sparse column; the end of the column where it has none. */
static inline DRIFT_CELL *DRIFT_NAME(drift_find)(DriftColumn *c, int slot) {
    DRIFT_CELL *e = DRIFT_CELLS(c), *end = e + c->size;
    for (; end - e >= 8; e += 8) { /* without a branch for each, so that vectors do it */
        int hit = 0;
        for (int i = 0; i < 8; i++) hit |= e[i].slot == slot;
        if (hit) break;
    }
    while (e < end && e->slot != slot) e++;
    return e;
}

static double DRIFT_NAME(drift_get)(DriftColumn *c, int slot) {
    if (drift_is_dense(c)) return (double)((const REAL *)c->block)[slot];
    const DRIFT_CELL *e = DRIFT_NAME(drift_find)(c, slot);
    return e < DRIFT_CELLS(c) + c->size ? (double)e->value : 0.0;
}

/* Forget a slot's value; a dense column below a sixteenth of the slots turns sparse again, so that
   memory follows what is held. */
static void DRIFT_NAME(drift_drop)(DriftColumn *c, int slot, int capacity) {
    c->size--;
    if (c->room) {
        *DRIFT_NAME(drift_find)(c, slot) = DRIFT_CELLS(c)[c->size];
    } else {
        ((REAL *)c->block)[slot] = 0;
        if (c->size < capacity / 16) (void)DRIFT_NAME(drift_make_sparse)(c, capacity);
    }
}

static int DRIFT_NAME(drift_widen_dense)(DriftColumn *c, int before, int after) {
    void *block = drift_grow(c->block, (size_t)before * sizeof(REAL), (size_t)after * sizeof(REAL));
    if (!block) return -1;
    c->block = block;
    return 0;
}

#undef DRIFT_CELL
#undef DRIFT_CELLS
#undef DRIFT_NAME
#undef DRIFT_JOIN
#undef DRIFT_JOIN2
