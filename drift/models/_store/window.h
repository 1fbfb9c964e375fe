/* Windows: the dense columns of many rows of a batch, summed up a patch of slots at a time.

   Where the columns of one row are more than the second-level cache holds, each row after it waits for
   all of them anew. A patch of them stays in the cache while every row of the window takes its part.
   Each slot of each row is summed up as `drift_add_dense` does it alone, so no bit depends on whether
   there is a window. This file, included for each precision by columns.h, owns the constants. */

#ifndef DRIFT_WINDOW_H
#define DRIFT_WINDOW_H
#ifndef DRIFT_WORTH /* else it is set so that windows are tried on small stores, too */
#define DRIFT_WORTH (1 << 20) /* bytes of a row's dense columns from which on a window pays */
#endif
#define DRIFT_WINDOW 32 /* rows */
#define DRIFT_PATCH 128 /* slots; sixteen columns of them and their sums fit the first-level cache */
#define DRIFT_CHANGES 32 /* blocks of DRIFT_LANES slots that may change before a window is of no use */
#endif

typedef struct {
    const REAL *dense[DRIFT_WINDOW][DRIFT_CHUNK + 3];
    REAL weight[DRIFT_WINDOW][DRIFT_CHUNK + 3];
    int count[DRIFT_WINDOW];
} DRIFT_NAME(DriftWindow);

/* Note a row's dense columns, of its first DRIFT_CHUNK. */
static void DRIFT_NAME(drift_store_row)(void *window, int row, const DriftColumn *columns, const int32_t *ids,
                                     const double *values, int count) {
    DRIFT_NAME(DriftWindow) *w = (DRIFT_NAME(DriftWindow) *)window;
    int n = 0;
    for (int t = 0; t < count && t < DRIFT_CHUNK; t++) {
        const DriftColumn *c = &columns[ids[t]];
        w->dense[row][n] = (const REAL *)c->block;
        w->weight[row][n] = (REAL)values[t];
        n += drift_is_dense(c);
    }
    w->count[row] = n;
}

/* Whether the row would be noted as it was: what its sums are of has not changed but in some slots. */
static int DRIFT_NAME(drift_is_stored)(const void *window, int row, const DriftColumn *columns, const int32_t *ids,
                                     const double *values, int count) {
    const DRIFT_NAME(DriftWindow) *w = (const DRIFT_NAME(DriftWindow) *)window;
    int n = 0;
    for (int t = 0; t < count && t < DRIFT_CHUNK; t++) {
        const DriftColumn *c = &columns[ids[t]];
        if (!drift_is_dense(c)) continue;
        if (n == w->count[row] || w->dense[row][n] != c->block || w->weight[row][n] != (REAL)values[t]) return 0;
        n++;
    }
    return n == w->count[row];
}

/* Sum up the dense columns of all rows, `slots` apart in `sums`, which is zero; round by round, so that
   the columns that a row has just read are those that the next one reads. */
static void DRIFT_NAME(drift_sum_rows)(void *window, void *sums, int rows, int slots) {
    DRIFT_NAME(DriftWindow) *w = (DRIFT_NAME(DriftWindow) *)window;
    for (int row = 0; row < rows; row++) DRIFT_NAME(drift_pad)(w->dense[row], w->weight[row], w->count[row]);
    for (int from = 0; from < slots; from += DRIFT_PATCH) {
        int next[DRIFT_WINDOW] = {0}, size = slots - from < DRIFT_PATCH ? slots - from : DRIFT_PATCH, more = 1;
        while (more) {
            more = 0;
            for (int row = 0; row < rows; row++) {
                REAL *acc = (REAL *)sums + (size_t)row * slots + from;
                if (next[row] < w->count[row])
                    next[row] = DRIFT_NAME(drift_add_round)(acc, w->dense[row], w->weight[row], w->count[row],
                                                            next[row], from, size);
                more |= next[row] < w->count[row];
            }
        }
    }
}

/* Sum up a row's dense columns anew in the block of slots that begins with `from`. */
static void DRIFT_NAME(drift_sum_block)(const void *window, void *sums, int row, int slots, int from) {
    const DRIFT_NAME(DriftWindow) *w = (const DRIFT_NAME(DriftWindow) *)window;
    REAL *acc = (REAL *)sums + (size_t)row * slots + from;
    memset(acc, 0, DRIFT_LANES * sizeof(REAL));
    for (int k = 0; k < w->count[row];)
        k = DRIFT_NAME(drift_add_round)(acc, w->dense[row], w->weight[row], w->count[row], k, from, DRIFT_LANES);
}

static size_t DRIFT_NAME(drift_window_size)(void) { return sizeof(DRIFT_NAME(DriftWindow)); }
