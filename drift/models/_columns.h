/* The arithmetic of the column store, once per precision: this file is included with REAL set.

   Every loop treats each slot by itself, in the order of the columns, and the one sum over slots has
   a fixed number of lanes: the vector width changes the speed and never a bit of the result. */

#ifndef DRIFT_COLUMNS_H
#define DRIFT_COLUMNS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define DRIFT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DRIFT_CLONES
#endif
#if defined(__GNUC__)
#define DRIFT_PREFETCH(p) __builtin_prefetch(p)
#else
#define DRIFT_PREFETCH(p) ((void)(p))
#endif

#define DRIFT_LANES 16 /* slots come in multiples of this, so that no loop over slots has a tail */

enum { DRIFT_LINEAR = 0, DRIFT_POLYNOMIAL = 1, DRIFT_RBF = 2, DRIFT_CUSTOM = 3 };

/* One feature's values over the slots. Sparse: `size` reals, then their slots, in one block with
   room for `room` of each. Dense (room == 0): one real per slot of the store. */
typedef struct {
    void *block;
    int32_t size;
    int32_t room;
} DriftColumn;

/* Sum of weight * row in fixed lanes; a result within rounding of zero, a share `tie` of its terms'
   sizes, is the tie that exact arithmetic would give, and is returned as 0. */
DRIFT_CLONES static double drift_weighted_sum(const double *weight, const double *row, int n, double tie) {
    double sum[DRIFT_LANES] = {0}, magnitude[DRIFT_LANES] = {0};
    for (int i = 0; i < n; i += DRIFT_LANES)
        for (int l = 0; l < DRIFT_LANES; l++) {
            double term = weight[i + l] * row[i + l];
            sum[l] += term;
            magnitude[l] += fabs(term);
        }
    for (int half = DRIFT_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) {
            sum[l] += sum[l + half];
            magnitude[l] += magnitude[l + half];
        }
    return fabs(sum[0]) <= tie * magnitude[0] ? 0.0 : sum[0];
}

static inline double drift_power(double base, int degree) {
    double power = 1.0;
    for (;; base *= base) {
        if (degree & 1) power *= base;
        if (!(degree >>= 1)) return power;
    }
}

/* k = (row + c) ** degree, by squaring. */
DRIFT_CLONES static void drift_polynomial(double *row, int n, double c, int degree) {
    for (int i = 0; i < n; i += DRIFT_LANES) {
        double base[DRIFT_LANES], power[DRIFT_LANES];
        for (int l = 0; l < DRIFT_LANES; l++) {
            base[l] = row[i + l] + c;
            power[l] = 1.0;
        }
        for (int d = degree;;) {
            if (d & 1)
                for (int l = 0; l < DRIFT_LANES; l++) power[l] *= base[l];
            if (!(d >>= 1)) break;
            for (int l = 0; l < DRIFT_LANES; l++) base[l] *= base[l];
        }
        for (int l = 0; l < DRIFT_LANES; l++) row[i + l] = power[l];
    }
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

/* Order of the columns `ids` as positions into them, by bytes from the lowest. */
static void drift_sort(uint64_t *keys, uint64_t *spare, int n, uint32_t largest) {
    for (int shift = 32; shift < 64 && (largest >> (shift - 32)); shift += 8) {
        int start[257] = {0};
        for (int i = 0; i < n; i++) start[((keys[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++) start[b + 1] += start[b];
        for (int i = 0; i < n; i++) spare[start[(keys[i] >> shift) & 255]++] = keys[i];
        memcpy(keys, spare, (size_t)n * sizeof *keys);
    }
}

#endif

#define DRIFT_JOIN2(a, b) a##_##b
#define DRIFT_JOIN(a, b) DRIFT_JOIN2(a, b)
#define DRIFT_NAME(name) DRIFT_JOIN(name, REAL)

static inline int32_t *DRIFT_NAME(drift_slots)(const DriftColumn *c) {
    return (int32_t *)((REAL *)c->block + c->room);
}

DRIFT_CLONES static void DRIFT_NAME(drift_axpy4)(REAL *restrict acc, const REAL *const *c, const REAL *u, int n) {
    const REAL *restrict c0 = c[0], *restrict c1 = c[1], *restrict c2 = c[2], *restrict c3 = c[3];
    REAL u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    for (int i = 0; i < n; i++)
        acc[i] = (((acc[i] + u0 * c0[i]) + u1 * c1[i]) + u2 * c2[i]) + u3 * c3[i];
}

DRIFT_CLONES static void DRIFT_NAME(drift_axpy)(REAL *restrict acc, const REAL *restrict c, REAL u, int n) {
    for (int i = 0; i < n; i++) acc[i] += u * c[i];
}

DRIFT_CLONES static void DRIFT_NAME(drift_widen)(double *restrict row, const REAL *restrict acc,
                                                const double *restrict scale, double point, int n) {
    for (int i = 0; i < n; i++) row[i] = (double)acc[i] * (scale[i] * point);
}

/* row[slot] = <support in slot, point>, for the point's sorted columns and scaled values. */
static void DRIFT_NAME(drift_dots)(const DriftColumn *columns, const int32_t *ids, const double *values, int count,
                                  void *work, const double *scale, double point, double *row, int n) {
    REAL *acc = (REAL *)work;
    const REAL *dense[4];
    REAL weight[4];
    int waiting = 0;
    for (int t = 0; t < count; t++) DRIFT_PREFETCH(columns[ids[t]].block);
    memset(acc, 0, (size_t)n * sizeof(REAL));
    for (int t = 0; t < count; t++) {
        const DriftColumn *c = &columns[ids[t]];
        REAL u = (REAL)values[t];
        if (!c->room) {
            dense[waiting] = (const REAL *)c->block;
            weight[waiting++] = u;
            if (waiting == 4) {
                DRIFT_NAME(drift_axpy4)(acc, dense, weight, n);
                waiting = 0;
            }
        } else {
            const REAL *value = (const REAL *)c->block;
            const int32_t *slot = DRIFT_NAME(drift_slots)(c);
            for (int e = 0; e < c->size; e++) acc[slot[e]] += u * value[e];
        }
    }
    for (int k = 0; k < waiting; k++) DRIFT_NAME(drift_axpy)(acc, dense[k], weight[k], n);
    DRIFT_NAME(drift_widen)(row, acc, scale, point, n);
}

/* Give a sparse column room for `room` entries. Returns -1, the column untouched, without memory. */
static int DRIFT_NAME(drift_reserve)(DriftColumn *c, int room) {
    REAL *block = (REAL *)malloc((size_t)room * (sizeof(REAL) + sizeof(int32_t)));
    if (!block) return -1;
    if (c->size) {
        memcpy(block, c->block, (size_t)c->size * sizeof(REAL));
        memcpy(block + room, DRIFT_NAME(drift_slots)(c), (size_t)c->size * sizeof(int32_t));
    }
    free(c->block);
    c->block = block;
    c->room = room;
    return 0;
}

static int DRIFT_NAME(drift_make_dense)(DriftColumn *c, int capacity) {
    REAL *block = (REAL *)calloc((size_t)capacity, sizeof(REAL));
    if (!block) return -1;
    for (int e = 0; e < c->size; e++) block[DRIFT_NAME(drift_slots)(c)[e]] = ((REAL *)c->block)[e];
    free(c->block);
    c->block = block;
    c->room = 0;
    return 0;
}

static int DRIFT_NAME(drift_make_sparse)(DriftColumn *c, int capacity) {
    REAL *dense = (REAL *)c->block;
    DriftColumn sparse = {NULL, 0, 0};
    if (DRIFT_NAME(drift_reserve)(&sparse, c->size + 1)) return -1;
    for (int s = 0; s < capacity; s++)
        if (dense[s] != 0) {
            ((REAL *)sparse.block)[sparse.size] = dense[s];
            DRIFT_NAME(drift_slots)(&sparse)[sparse.size++] = s;
        }
    free(dense);
    *c = sparse;
    return 0;
}

/* Write a non-zero value; a column with more than an eighth of the slots turns dense. */
static int DRIFT_NAME(drift_put)(DriftColumn *c, int slot, double value, int capacity) {
    if (c->block && !c->room) {
        ((REAL *)c->block)[slot] = (REAL)value;
        c->size++;
        return 0;
    }
    if (c->size == c->room && DRIFT_NAME(drift_reserve)(c, c->room ? 2 * c->room : 2)) return -1;
    ((REAL *)c->block)[c->size] = (REAL)value;
    DRIFT_NAME(drift_slots)(c)[c->size++] = slot;
    return c->size > capacity / 8 ? DRIFT_NAME(drift_make_dense)(c, capacity) : 0;
}

/* Entry of a slot in a sparse column; the column's size where it has none. */
static inline int DRIFT_NAME(drift_find)(const DriftColumn *c, int slot) {
    const int32_t *slots = DRIFT_NAME(drift_slots)(c);
    int e = 0;
    while (e < c->size && slots[e] != slot) e++;
    return e;
}

static double DRIFT_NAME(drift_get)(const DriftColumn *c, int slot) {
    const REAL *value = (const REAL *)c->block;
    if (!c->room) return (double)value[slot];
    int e = DRIFT_NAME(drift_find)(c, slot);
    return e < c->size ? (double)value[e] : 0.0;
}

/* Forget a slot's value; a dense column below a sixteenth of the slots turns sparse again, so that
   memory follows what is held. */
static void DRIFT_NAME(drift_drop)(DriftColumn *c, int slot, int capacity) {
    REAL *value = (REAL *)c->block;
    if (c->room) {
        int e = DRIFT_NAME(drift_find)(c, slot);
        c->size--;
        value[e] = value[c->size];
        DRIFT_NAME(drift_slots)(c)[e] = DRIFT_NAME(drift_slots)(c)[c->size];
    } else {
        value[slot] = 0;
        c->size--;
        if (c->size < capacity / 16) (void)DRIFT_NAME(drift_make_sparse)(c, capacity);
    }
}

static int DRIFT_NAME(drift_widen_dense)(DriftColumn *c, int before, int after) {
    REAL *block = (REAL *)realloc(c->block, (size_t)after * sizeof(REAL));
    if (!block) return -1;
    memset(block + before, 0, (size_t)(after - before) * sizeof(REAL));
    c->block = block;
    return 0;
}

#undef DRIFT_NAME
#undef DRIFT_JOIN
#undef DRIFT_JOIN2
