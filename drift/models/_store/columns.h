/* Columns of values by slot, and inner products with all slots. Included once per precision.

   `Slots` (columns_slots.pxi) keeps the columns, `Scores.compute_dots` (columns_scores.pxi) calls `drift_dots`. The
   Tracker keeps its supports in such columns, too.

   Loops compute each slot separately, in the order of the columns, so the vector width never changes a
   bit of the result. */

#ifndef DRIFT_COLUMNS_H
#define DRIFT_COLUMNS_H

#include "portable.h"

/* These two and DRIFT_LANES are in constants.py, too, with their meaning; columns.pyx checks that they agree. */
#define DRIFT_DENSE 8
#define DRIFT_SPARSE 16
#define DRIFT_CHUNK 1024 /* columns added in one pass */
#define DRIFT_AHEAD 4 /* sparse columns to prefetch */

typedef struct {
    int32_t slot;
    float value;
} DriftCell_float;

typedef struct {
    int32_t slot;
    double value;
} DriftCell_double;

/* One feature's values over the slots. Sparse: `size` cells in a block for `room` cells, a multiple of
   four. A single float cell lies in the column itself (room == 1), as most features have only one.
   Unused cells have slot -1 and value 0, so that loops process four at a time.
   Dense (room == 0 and a block): one real per slot of the store. */
typedef struct {
    union {
        void *block;
        DriftCell_float single;
    };
    int32_t size;
    int32_t room;
} DriftColumn;

static inline DriftCell_float *drift_cells_float(DriftColumn *c) {
    return c->room == 1 ? &c->single : (DriftCell_float *)c->block;
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

/* Cells to allocate for `size`. */
static inline int drift_room(int size) { return (size + size / 4 + 3) & ~3; }

/* Prefetch a sparse column's cells, which are in the second-level cache or beyond. */
static inline void drift_prefetch_head(const DriftColumn *c) {
    DRIFT_PREFETCH(c->room == 1 ? (const void *)c : c->block);
}

/* Prefetch the next three cache lines, enough for most columns. A loop over the actual number would
   mispredict a branch each time. */
static inline void drift_prefetch_lines(const void *block) {
    for (int line = 1; line < 4; line++) DRIFT_PREFETCH((const char *)block + 64 * line);
}

static inline void drift_prefetch_rest(const DriftColumn *c) {
    drift_prefetch_lines(c->room > 1 ? c->block : (const void *)c);
}

#endif

#define DRIFT_CELL DRIFT_NAME(DriftCell)
#define DRIFT_CELLS DRIFT_NAME(drift_cells)
#define DRIFT_LIST DRIFT_NAME(DriftList)
#define DRIFT_INSIDE (sizeof(DRIFT_CELL) <= sizeof(DriftCell_float)) /* whether a cell fits into the column */

/* Many dense columns are added pairwise, sixteen, eight or four at a time. That takes fewer passes over the
   sums, and rounds less. */
#define DRIFT_MANY 64
#define DRIFT_TWO(k) (u[k] * c[k][i] + u[(k) + 1] * c[(k) + 1][i])
#define DRIFT_FOUR(k) (DRIFT_TWO(k) + DRIFT_TWO((k) + 2))
#define DRIFT_EIGHT(k) (DRIFT_FOUR(k) + DRIFT_FOUR((k) + 4))
#define DRIFT_AXPY(name, count, SUM)                                                                \
    DRIFT_CLONES static void DRIFT_NAME(name)(REAL *__restrict acc, const REAL *const *columns,     \
                                              const REAL *values, int from, int n) {                \
        const REAL *c[count];                                                                       \
        REAL u[count];                                                                              \
        for (int k = 0; k < count; k++) {                                                           \
            c[k] = columns[k] + from;                                                               \
            u[k] = values[k];                                                                       \
        }                                                                                           \
        for (int i = 0; i < n; i++) acc[i] += SUM;                                                  \
    }
DRIFT_AXPY(drift_axpy16_pairwise, 16, DRIFT_EIGHT(0) + DRIFT_EIGHT(8))
DRIFT_AXPY(drift_axpy8_pairwise, 8, DRIFT_EIGHT(0))
DRIFT_AXPY(drift_axpy4_pairwise, 4, DRIFT_FOUR(0))
#undef DRIFT_AXPY
#undef DRIFT_EIGHT
#undef DRIFT_FOUR
#undef DRIFT_TWO

/* Few dense columns: four at a time, added one by one. */
DRIFT_CLONES static void DRIFT_NAME(drift_axpy4_in_order)(REAL *__restrict acc, const REAL *const *c,
                                                         const REAL *u, int from, int n) {
    const REAL *__restrict c0 = c[0] + from, *__restrict c1 = c[1] + from;
    const REAL *__restrict c2 = c[2] + from, *__restrict c3 = c[3] + from;
    REAL u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    for (int i = 0; i < n; i++)
        acc[i] = (((acc[i] + u0 * c0[i]) + u1 * c1[i]) + u2 * c2[i]) + u3 * c3[i];
}

/* Pad dense columns to a multiple of four, with the first column times 0. The arrays have room for
   three more. */
static void DRIFT_NAME(drift_pad)(const REAL **dense, REAL *values, int count) {
    for (; count & 3; count++) {
        dense[count] = dense[0];
        values[count] = 0;
    }
}

/* Add a group of the `count` padded dense columns, from the k-th on, over n slots; return the next k. */
static inline int DRIFT_NAME(drift_add_round)(REAL *acc, const REAL *const *dense, const REAL *values, int count,
                                             int k, int from, int n) {
    int padded = (count + 3) & ~3;
    if (count < DRIFT_MANY) {
        DRIFT_NAME(drift_axpy4_in_order)(acc, dense + k, values + k, from, n);
        return k + 4;
    }
    if (padded - k >= 16) {
        DRIFT_NAME(drift_axpy16_pairwise)(acc, dense + k, values + k, from, n);
        return k + 16;
    }
    if (padded - k >= 8) {
        DRIFT_NAME(drift_axpy8_pairwise)(acc, dense + k, values + k, from, n);
        return k + 8;
    }
    DRIFT_NAME(drift_axpy4_pairwise)(acc, dense + k, values + k, from, n);
    return k + 4;
}

/* A sparse column, and the point's value in it. */
typedef struct {
    const DRIFT_CELL *cells;
    REAL value;
    int32_t size;
} DRIFT_LIST;

/* A column's slots are distinct, so four cells are independent. acc[-1] absorbs the padding cells. */
static inline void DRIFT_NAME(drift_scatter)(REAL *__restrict acc, DRIFT_LIST list) {
    const DRIFT_CELL *__restrict e = list.cells;
    REAL u = list.value;
    for (int k = 0; k < list.size; k += 4, e += 4) {
        REAL a0 = acc[e[0].slot] + u * e[0].value, a1 = acc[e[1].slot] + u * e[1].value;
        REAL a2 = acc[e[2].slot] + u * e[2].value, a3 = acc[e[3].slot] + u * e[3].value;
        acc[e[0].slot] = a0;
        acc[e[1].slot] = a1;
        acc[e[2].slot] = a2;
        acc[e[3].slot] = a3;
    }
}

/* Add the inner products over at most DRIFT_CHUNK columns: dense ones, then sparse ones, then single
   cells, each kind in the point's order. `summed`: `acc` contains the dense ones already. One loop over
   mixed kinds would mispredict its branches. */
static void DRIFT_NAME(drift_add_chunk)(REAL *acc, DriftColumn *columns, const int32_t *ids,
                                       const double *values, int count, int n, int summed) {
    const REAL *dense[DRIFT_CHUNK + 3];
    REAL dense_values[DRIFT_CHUNK + 3];
    DRIFT_LIST lists[DRIFT_CHUNK + DRIFT_AHEAD];
    int singles[DRIFT_CHUNK], n_dense = 0, n_lists = 0, n_singles = 0;
    for (int t = 0; t < count; t++) {
        const DriftColumn *c = &columns[ids[t]];
        REAL u = (REAL)values[t];
        dense[n_dense] = (const REAL *)c->block;
        dense_values[n_dense] = u;
        n_dense += c->room == 0;
        lists[n_lists] = (DRIFT_LIST){(const DRIFT_CELL *)c->block, u, c->size};
        n_lists += c->room > 1;
        singles[n_singles] = t;
        n_singles += c->room == 1;
    }
    DRIFT_NAME(drift_pad)(dense, dense_values, n_dense);
    for (int k = summed ? n_dense : 0; k < n_dense;)
        k = DRIFT_NAME(drift_add_round)(acc, dense, dense_values, n_dense, k, 0, n);
    for (int k = 0; k < DRIFT_AHEAD; k++) {
        lists[n_lists + k] = (DRIFT_LIST){(const DRIFT_CELL *)acc, 0, 0};
        DRIFT_PREFETCH(lists[k].cells);
        drift_prefetch_lines(lists[k].cells);
    }
    for (int k = 0; k < n_lists; k++) {
        DRIFT_PREFETCH(lists[k + DRIFT_AHEAD].cells);
        drift_prefetch_lines(lists[k + DRIFT_AHEAD].cells);
        DRIFT_NAME(drift_scatter)(acc, lists[k]);
    }
    for (int k = 0; k < n_singles; k++) {
        const DRIFT_CELL *cell = DRIFT_CELLS(&columns[ids[singles[k]]]);
        acc[cell->slot] += (REAL)values[singles[k]] * cell->value;
    }
}

/* work[slot] = inner product of the stored values of the support in the slot and of the point, for the point's sorted
   columns. work[-1] exists. `sums` is the point's row of a window, or NULL. */
static void DRIFT_NAME(drift_dots)(DriftColumn *columns, const int32_t *ids, const double *values, int count,
                                  void *work, int n, const void *sums) {
    if (!n) return; /* without slots there is no block */
    if (sums)
        memcpy(work, sums, (size_t)n * sizeof(REAL));
    else
        memset(work, 0, (size_t)n * sizeof(REAL));
    for (int t = 0; t < count; t += DRIFT_CHUNK)
        DRIFT_NAME(drift_add_chunk)((REAL *)work, columns, ids + t, values + t,
                                    count - t < DRIFT_CHUNK ? count - t : DRIFT_CHUNK, n, sums && !t);
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

/* Move a sparse column's cells to a block of `room` cells; -1 if out of memory. */
static int DRIFT_NAME(drift_resize)(DriftColumn *c, int room) {
    DRIFT_CELL *block = (DRIFT_CELL *)malloc((size_t)room * sizeof *block);
    if (!block) return -1;
    if (c->size) memcpy(block, DRIFT_CELLS(c), (size_t)c->size * sizeof *block);
    for (int e = c->size; e < room; e++) block[e] = (DRIFT_CELL){-1, 0};
    if (c->room > 1) free(c->block);
    c->block = block;
    c->room = room;
    return 0;
}

/* Free unused room of a sparse column if it is half or more, and the block of a single cell. */
static void DRIFT_NAME(drift_shrink)(DriftColumn *c) {
    void *block = c->block;
    if (c->size == 1 && DRIFT_INSIDE) {
        memcpy(&c->single, block, sizeof c->single);
        free(block);
        c->room = 1;
    } else if (2 * c->size <= c->room && c->room > 4)
        (void)DRIFT_NAME(drift_resize)(c, drift_room(c->size));
}

static int DRIFT_NAME(drift_make_sparse)(DriftColumn *c, int capacity) {
    REAL *dense = (REAL *)c->block;
    int32_t size = c->size;
    DriftColumn sparse = {{0}, 0, 0};
    if (DRIFT_NAME(drift_resize)(&sparse, drift_room(size))) return -1;
    for (int s = 0; s < capacity; s++)
        if (dense[s] != 0) DRIFT_CELLS(&sparse)[sparse.size++] = (DRIFT_CELL){s, dense[s]};
    DRIFT_NAME(drift_shrink)(&sparse);
    drift_free(dense);
    *c = sparse;
    return 0;
}

/* Write a non-zero value; a column with more than `max_sparse` values turns dense. Out of memory: -1, the
   column unchanged. */
static int DRIFT_NAME(drift_put)(DriftColumn *c, int slot, double value, int capacity, int max_sparse) {
    if (drift_is_dense(c)) {
        ((REAL *)c->block)[slot] = (REAL)value;
        c->size++;
        return 0;
    }
    if (c->size == c->room) {
        if (!c->room && DRIFT_INSIDE)
            c->room = 1;
        else if (DRIFT_NAME(drift_resize)(c, drift_room(c->size + 1)))
            return -1;
    }
    DRIFT_CELLS(c)[c->size++] = (DRIFT_CELL){slot, (REAL)value};
    return c->size > max_sparse ? DRIFT_NAME(drift_make_dense)(c, capacity) : 0;
}

/* A slot's cell in a sparse column, or the column's end. */
static inline DRIFT_CELL *DRIFT_NAME(drift_find)(DriftColumn *c, int slot) {
    DRIFT_CELL *e = DRIFT_CELLS(c), *end = e + c->size;
    if (c->room == 1) return e + (e->slot != slot);
    for (; e < end; e += 4) { /* one branch for four cells, as each branch is mispredicted once */
        int second = e[1].slot == slot, third = e[2].slot == slot, fourth = e[3].slot == slot;
        if ((e->slot == slot) | second | third | fourth) return e + second + 2 * third + 3 * fourth;
    }
    return end;
}

static double DRIFT_NAME(drift_get)(DriftColumn *c, int slot) {
    if (drift_is_dense(c)) return (double)((const REAL *)c->block)[slot];
    const DRIFT_CELL *e = DRIFT_NAME(drift_find)(c, slot);
    return e < DRIFT_CELLS(c) + c->size ? (double)e->value : 0.0;
}

/* Delete a slot's value. A sparse column frees unused room; a dense one with too few values turns
   sparse. */
static void DRIFT_NAME(drift_drop)(DriftColumn *c, int slot, int capacity) {
    if (c->room) {
        DRIFT_CELL *last = DRIFT_CELLS(c) + c->size - 1;
        *DRIFT_NAME(drift_find)(c, slot) = *last;
        *last = (DRIFT_CELL){-1, 0};
        c->size--;
        if (c->room > 1 && c->size) DRIFT_NAME(drift_shrink)(c);
    } else {
        c->size--;
        ((REAL *)c->block)[slot] = 0;
        if (c->size < capacity / DRIFT_SPARSE) (void)DRIFT_NAME(drift_make_sparse)(c, capacity);
    }
}

static int DRIFT_NAME(drift_grow_dense)(DriftColumn *c, int before, int after) {
    void *block = drift_grow(c->block, (size_t)before * sizeof(REAL), (size_t)after * sizeof(REAL));
    if (!block) return -1;
    c->block = block;
    return 0;
}

#undef DRIFT_CELL
#undef DRIFT_CELLS
#undef DRIFT_LIST
#undef DRIFT_INSIDE
