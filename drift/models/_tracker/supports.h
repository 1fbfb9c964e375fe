/* The tracker's supports: a column for each of their features, with values by slot. */

#ifndef DRIFT_SUPPORTS_H
#define DRIFT_SUPPORTS_H

#include "numbers.h"

typedef struct {
    DriftColumn *columns;
    int32_t *number_of, *free_columns; /* the feature of a column; columns that have none */
    int n_columns, n_free, column_room;
    DriftNumbers numbers; /* the column of a feature */
    int32_t **ids, *sizes; /* of a slot: the columns that it has values in */
    int capacity; /* slots */
} DriftSupports;

static void drift_supports_clear(DriftSupports *s) {
    for (int j = 0; j < s->n_columns; j++) drift_clear(&s->columns[j]);
    for (int i = 0; i < s->capacity; i++) free(s->ids[i]);
    free(s->columns), free(s->number_of), free(s->free_columns), free(s->numbers.places), free(s->ids), free(s->sizes);
    memset(s, 0, sizeof *s);
}

/* Reserve slots. Returns -1 without memory, and changes nothing. */
static int drift_supports_reserve(DriftSupports *s, int capacity) {
    int32_t **ids = (int32_t **)realloc(s->ids, (size_t)capacity * sizeof *ids);
    if (!ids) return -1;
    s->ids = ids;
    int32_t *sizes = (int32_t *)realloc(s->sizes, (size_t)capacity * sizeof *sizes);
    if (!sizes) return -1;
    s->sizes = sizes;
    for (int j = 0; j < s->n_columns; j++)
        if (drift_is_dense(&s->columns[j]) && drift_grow_dense_float(&s->columns[j], s->capacity, capacity)) return -1;
    for (int i = s->capacity; i < capacity; i++) ids[i] = NULL, sizes[i] = 0;
    s->capacity = capacity;
    return 0;
}

/* The column of a feature, made if there is none; -1 without memory. */
static int32_t drift_supports_column(DriftSupports *s, int32_t number) {
    int32_t column = drift_numbers_find(&s->numbers, s->number_of, number);
    if (column >= 0) return column;
    if (!s->n_free && s->n_columns == s->column_room) {
        int room = s->column_room ? 2 * s->column_room : 8;
        DriftColumn *columns = (DriftColumn *)realloc(s->columns, (size_t)room * sizeof *columns);
        if (columns) s->columns = columns;
        int32_t *number_of = (int32_t *)realloc(s->number_of, (size_t)room * sizeof *number_of);
        if (number_of) s->number_of = number_of;
        int32_t *free_columns = (int32_t *)realloc(s->free_columns, (size_t)room * sizeof *free_columns);
        if (free_columns) s->free_columns = free_columns;
        if (!columns || !number_of || !free_columns) return -1;
        s->column_room = room;
    }
    column = s->n_free ? s->free_columns[s->n_free - 1] : s->n_columns;
    s->number_of[column] = number;
    if (drift_numbers_enter(&s->numbers, s->number_of, column)) return -1;
    if (s->n_free)
        s->n_free--;
    else
        s->n_columns++;
    memset(&s->columns[column], 0, sizeof *s->columns);
    return column;
}

/* Remove the first `count` values of a slot. */
static void drift_supports_drop(DriftSupports *s, int slot, int count) {
    for (int k = 0; k < count; k++) DRIFT_PREFETCH(&s->columns[s->ids[slot][k]]);
    for (int k = 0; k < count; k++) drift_prefetch_head(&s->columns[s->ids[slot][k]]);
    for (int k = 0; k < count; k++) {
        int32_t column = s->ids[slot][k];
        drift_drop_float(&s->columns[column], slot, s->capacity);
        if (s->columns[column].size) continue;
        drift_clear(&s->columns[column]);
        drift_numbers_leave(&s->numbers, s->number_of, column);
        s->free_columns[s->n_free++] = column;
    }
    free(s->ids[slot]);
    s->ids[slot] = NULL;
    s->sizes[slot] = 0;
}

/* Put a support into a free slot. Returns -1 without memory, and changes nothing. */
static int drift_supports_add(DriftSupports *s, int slot, const int32_t *numbers, const double *values, int n) {
    int32_t *ids = (int32_t *)malloc((size_t)(n ? n : 1) * sizeof *ids);
    if (!ids) return -1;
    s->ids[slot] = ids;
    for (int k = 0; k < n; k++) drift_numbers_prefetch(&s->numbers, numbers[k]);
    for (int k = 0; k < n; k++) {
        int32_t column = drift_supports_column(s, numbers[k]);
        if (column >= 0) {
            ids[k] = column;
            if (!drift_put_float(&s->columns[column], slot, values[k], s->capacity, s->capacity / DRIFT_DENSE)) continue;
            if (!s->columns[column].size) { /* it was made for this one */
                drift_numbers_leave(&s->numbers, s->number_of, column);
                s->free_columns[s->n_free++] = column;
            }
        }
        drift_supports_drop(s, slot, k);
        return -1;
    }
    s->sizes[slot] = n;
    return 0;
}

/* Read a slot's features and values in the order of `drift_supports_add`. */
static void drift_supports_read(DriftSupports *s, int slot, int32_t *numbers, double *values) {
    for (int k = 0; k < s->sizes[slot]; k++) {
        DriftColumn *column = &s->columns[s->ids[slot][k]];
        numbers[k] = s->number_of[s->ids[slot][k]];
        values[k] = drift_get_float(column, slot);
    }
}

/* Add four dense columns, in order. Columns of weight 0 add nothing. */
DRIFT_CLONES static void drift_add_four(double *__restrict dots, const float *const *columns, const double *values, int n) {
    const float *__restrict a = columns[0], *__restrict b = columns[1], *__restrict c = columns[2], *__restrict d = columns[3];
    double u = values[0], v = values[1], w = values[2], x = values[3];
    for (int i = 0; i < n; i++) dots[i] = (((dots[i] + u * (double)a[i]) + v * (double)b[i]) + w * (double)c[i]) + x * (double)d[i];
}

/* Inner products with all slots, summed in the order of features, dense columns and lists alike: which columns are dense
   depends on history, and a copy may differ. Lists are prefetched. */
static void drift_supports_dots(DriftSupports *s, const int32_t *numbers, const double *values, int n, double *dots) {
    const float *dense[4];
    double weights[4];
    int32_t places[DRIFT_CHUNK], lists[DRIFT_CHUNK];
    memset(dots, 0, (size_t)s->capacity * sizeof *dots);
    for (int first = 0; first < n; first += DRIFT_CHUNK) {
        int count = n - first < DRIFT_CHUNK ? n - first : DRIFT_CHUNK, n_dense = 0, n_lists = 0, list = 0;
        for (int k = 0; k < count; k++) drift_numbers_prefetch(&s->numbers, numbers[first + k]);
        for (int k = 0; k < count; k++) {
            places[k] = drift_numbers_find(&s->numbers, s->number_of, numbers[first + k]);
            if (places[k] >= 0) DRIFT_PREFETCH(&s->columns[places[k]]);
        }
        for (int k = 0; k < count; k++) {
            if (places[k] < 0 || drift_is_dense(&s->columns[places[k]])) continue;
            lists[n_lists++] = k;
            drift_prefetch_head(&s->columns[places[k]]);
        }
        for (int k = 0; k <= count; k++) {
            DriftColumn *column = k < count && places[k] >= 0 ? &s->columns[places[k]] : NULL;
            if (column && drift_is_dense(column)) {
                dense[n_dense] = (const float *)column->block;
                weights[n_dense++] = values[first + k];
                if (n_dense == 4) drift_add_four(dots, dense, weights, s->capacity), n_dense = 0;
                continue;
            }
            if (!column && k < count) continue;
            if (n_dense) {
                for (; n_dense < 4; n_dense++) dense[n_dense] = dense[0], weights[n_dense] = 0.0;
                drift_add_four(dots, dense, weights, s->capacity);
                n_dense = 0;
            }
            if (!column) break;
            if (list + DRIFT_AHEAD < n_lists) drift_prefetch_rest(&s->columns[places[lists[list + DRIFT_AHEAD]]]);
            list++;
            const DriftCell_float *cells = drift_cells_float(column);
            for (int c = 0; c < column->size; c++) dots[cells[c].slot] += values[first + k] * (double)cells[c].value;
        }
    }
}

static size_t drift_supports_bytes(const DriftSupports *s) {
    size_t size = (size_t)s->column_room * (sizeof(DriftColumn) + 2 * sizeof(int32_t));
    size += s->numbers.places ? (s->numbers.mask + 1) * sizeof(int32_t) : 0;
    for (int i = 0; i < s->capacity; i++) size += sizeof(int32_t *) + sizeof(int32_t) * (1 + (size_t)s->sizes[i]);
    for (int j = 0; j < s->n_columns; j++)
        if (drift_is_dense(&s->columns[j]))
            size += (size_t)s->capacity * sizeof(float);
        else if (s->columns[j].room > 1)
            size += (size_t)s->columns[j].room * sizeof(DriftCell_float);
    return size;
}

#endif
