/* Hash table from features' numbers to columns: linear probing, at most half full, deletion by shifting back. Numbers are
   stored by column, outside: a place takes four bytes. */

#ifndef DRIFT_NUMBERS_H
#define DRIFT_NUMBERS_H

typedef struct {
    int32_t *places; /* a column, or -1 where the place is free */
    size_t mask; /* number of places less one; a power of two less one */
    size_t size;
} DriftNumbers;

/* Home of a number; numbers are 0, 1, 2, ... or hashes. */
static inline size_t drift_number_home(const DriftNumbers *n, int32_t number) { return (uint32_t)number & n->mask; }

static inline void drift_numbers_prefetch(const DriftNumbers *n, int32_t number) {
    if (n->places) DRIFT_PREFETCH(&n->places[drift_number_home(n, number)]);
}

/* Column of a number; -1 if it has none. */
static inline int32_t drift_numbers_find(const DriftNumbers *n, const int32_t *number_of, int32_t number) {
    if (!n->places) return -1;
    for (size_t i = drift_number_home(n, number);; i = (i + 1) & n->mask) {
        int32_t column = n->places[i];
        if (column < 0 || number_of[column] == number) return column;
    }
}

static void drift_numbers_put(DriftNumbers *n, const int32_t *number_of, int32_t column) {
    size_t i = drift_number_home(n, number_of[column]);
    while (n->places[i] >= 0) i = (i + 1) & n->mask;
    n->places[i] = column;
}

static int drift_numbers_resize(DriftNumbers *n, const int32_t *number_of, size_t places) {
    int32_t *before = n->places, *after = (int32_t *)malloc(places * sizeof *after);
    size_t mask = n->mask;
    if (!after) return -1;
    memset(after, 0xFF, places * sizeof *after);
    n->places = after;
    n->mask = places - 1;
    for (size_t i = 0; before && i <= mask; i++)
        if (before[i] >= 0) drift_numbers_put(n, number_of, before[i]);
    free(before);
    return 0;
}

/* Add a column with a new number. Returns -1 without memory. */
static int drift_numbers_enter(DriftNumbers *n, const int32_t *number_of, int32_t column) {
    if ((!n->places || 2 * (n->size + 1) > n->mask + 1) &&
        drift_numbers_resize(n, number_of, n->places ? 2 * (n->mask + 1) : 16))
        return -1;
    drift_numbers_put(n, number_of, column);
    n->size++;
    return 0;
}

/* Remove a column. */
static void drift_numbers_leave(DriftNumbers *n, const int32_t *number_of, int32_t column) {
    size_t i = drift_number_home(n, number_of[column]);
    while (n->places[i] != column) i = (i + 1) & n->mask;
    for (size_t next = (i + 1) & n->mask; n->places[next] >= 0; next = (next + 1) & n->mask) {
        size_t home = drift_number_home(n, number_of[n->places[next]]);
        /* An entry may move to the gap unless its home lies after it. */
        if (((next - home) & n->mask) >= ((next - i) & n->mask)) {
            n->places[i] = n->places[next];
            i = next;
        }
    }
    n->places[i] = -1;
    n->size--;
    /* Shrink a large table that is almost empty. */
    if (n->mask >= 1024 && 16 * n->size < n->mask) (void)drift_numbers_resize(n, number_of, (n->mask + 1) / 4);
}

/* Sort keys whose upper halves are numbers below 2^31: bucket sort, then insertion sort. Hashes fill the buckets evenly;
   adversarial numbers may not, and are sorted by digits. */
static void drift_sort_numbers(uint64_t *keys, uint64_t *spare, int n) {
    int start[257] = {0};
    for (int i = 0; i < n; i++) start[(keys[i] >> 55) + 1]++;
    for (int b = 0; b < 256; b++) {
        if (start[b + 1] > 8 + n / 64) {
            drift_sort(keys, spare, n, 0x7FFFFFFF);
            return;
        }
        start[b + 1] += start[b];
    }
    for (int i = 0; i < n; i++) spare[start[keys[i] >> 55]++] = keys[i];
    for (int i = 0; i < n; i++) {
        uint64_t key = spare[i];
        int k = i;
        for (; k && keys[k - 1] > key; k--) keys[k] = keys[k - 1];
        keys[k] = key;
    }
}

#endif
