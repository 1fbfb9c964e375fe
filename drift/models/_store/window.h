/* Windows: sums over the dense columns for many rows of a batch, a patch of slots at a time.

   If one row's columns exceed the second-level cache, each row would load all of them again. A patch
   stays in the cache while all rows of the window use it. Each slot is summed in the same order as
   without a window, so the result has the same bits. Included once per precision, after columns.h. */

#ifndef DRIFT_WINDOW_H
#define DRIFT_WINDOW_H
#ifndef DRIFT_WINDOW_BYTES /* tests define a smaller one */
#define DRIFT_WINDOW_BYTES (1 << 20) /* bytes of a row's dense columns above which a window pays */
#endif
#define DRIFT_WINDOW 32 /* rows */
#define DRIFT_PATCH 128 /* slots; sixteen columns of them and their sums fit the first-level cache */
#define DRIFT_CHANGES 32 /* changed blocks of DRIFT_LANES slots after which a window is discarded */
#endif

typedef struct {
    const REAL *dense[DRIFT_WINDOW][DRIFT_CHUNK + 3];
    REAL values[DRIFT_WINDOW][DRIFT_CHUNK + 3];
    int count[DRIFT_WINDOW];
} DRIFT_NAME(DriftWindow);

/* Record a row's dense columns, among its first DRIFT_CHUNK. */
static void DRIFT_NAME(drift_record_row)(void *window, int row, const DriftColumn *columns, const int32_t *ids,
                                     const double *values, int count) {
    DRIFT_NAME(DriftWindow) *w = (DRIFT_NAME(DriftWindow) *)window;
    int n = 0;
    for (int t = 0; t < count && t < DRIFT_CHUNK; t++) {
        const DriftColumn *c = &columns[ids[t]];
        w->dense[row][n] = (const REAL *)c->block;
        w->values[row][n] = (REAL)values[t];
        n += drift_is_dense(c);
    }
    w->count[row] = n;
}

/* Whether the row has the same dense columns and values as when it was recorded. */
static int DRIFT_NAME(drift_is_recorded)(const void *window, int row, const DriftColumn *columns, const int32_t *ids,
                                     const double *values, int count) {
    const DRIFT_NAME(DriftWindow) *w = (const DRIFT_NAME(DriftWindow) *)window;
    int n = 0;
    for (int t = 0; t < count && t < DRIFT_CHUNK; t++) {
        const DriftColumn *c = &columns[ids[t]];
        if (!drift_is_dense(c)) continue;
        if (n == w->count[row] || w->dense[row][n] != c->block || w->values[row][n] != (REAL)values[t]) return 0;
        n++;
    }
    return n == w->count[row];
}

/* Add the dense columns of all rows to `sums`, which is zero, `slots` numbers per row. Rows alternate, so
   that the next row finds a group of columns in the cache. */
static void DRIFT_NAME(drift_sum_rows)(void *window, void *sums, int rows, int slots) {
    DRIFT_NAME(DriftWindow) *w = (DRIFT_NAME(DriftWindow) *)window;
    for (int row = 0; row < rows; row++) DRIFT_NAME(drift_pad)(w->dense[row], w->values[row], w->count[row]);
    for (int from = 0; from < slots; from += DRIFT_PATCH) {
        int next[DRIFT_WINDOW] = {0}, size = slots - from < DRIFT_PATCH ? slots - from : DRIFT_PATCH, more = 1;
        while (more) {
            more = 0;
            for (int row = 0; row < rows; row++) {
                REAL *acc = (REAL *)sums + (size_t)row * slots + from;
                if (next[row] < w->count[row])
                    next[row] = DRIFT_NAME(drift_add_round)(acc, w->dense[row], w->values[row], w->count[row],
                                                            next[row], from, size);
                more |= next[row] < w->count[row];
            }
        }
    }
}

/* Recompute a row's sums in the block of slots that starts at `from`. */
static void DRIFT_NAME(drift_sum_block)(const void *window, void *sums, int row, int slots, int from) {
    const DRIFT_NAME(DriftWindow) *w = (const DRIFT_NAME(DriftWindow) *)window;
    REAL *acc = (REAL *)sums + (size_t)row * slots + from;
    memset(acc, 0, DRIFT_LANES * sizeof(REAL));
    for (int k = 0; k < w->count[row];)
        k = DRIFT_NAME(drift_add_round)(acc, w->dense[row], w->values[row], w->count[row], k, from, DRIFT_LANES);
}

static size_t DRIFT_NAME(drift_window_size)(void) { return sizeof(DRIFT_NAME(DriftWindow)); }
