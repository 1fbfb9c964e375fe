/* Trees: two members, over the features and over these beside their context. Each is a sum of boosted trees over a window of
   kept rows; the oldest tree is fitted anew every few examples, to what the others leave.

   Gradients and curvatures are integers, so that a node's histogram is its parent's without its sibling's, whatever the
   order of the sums. A fit uses memory that was reserved with the window, and cannot fail. */

#ifndef DRIFT_TREES_H
#define DRIFT_TREES_H

enum { DRIFT_NODES = DRIFT_LEAVES - 1, DRIFT_HISTOGRAM = DRIFT_CHOSEN * DRIFT_BINS };

/* The arrays of a member: `capacity` rows and `stride` columns have room, the example has `columns`. */
typedef struct {
    DriftWindow *window;
    DriftForest *forest;
    int capacity, stride, columns;
    uint8_t *codes, *places;
    int32_t *labels, *n_edges, *features;
    float *scores, *weights, *missed, *sample, *edges, *thresholds, *leaves;
    double *gains;
    const float *row;
} DriftTrees;

#define DRIFT_TREES_OF(t, prefix, n)                                                                                              \
    (DriftTrees) {                                                                                                                \
        &(t)->prefix##tree_window, (t)->prefix##tree_forest, (t)->prefix##window, (t)->prefix##columns, n,                        \
            (t)->prefix##tree_codes, (t)->prefix##tree_places, (t)->prefix##tree_labels, (t)->prefix##tree_n_edges,               \
            (t)->prefix##tree_features, (t)->prefix##tree_scores, (t)->prefix##tree_weights, (t)->prefix##tree_missed,            \
            (t)->prefix##tree_sample, (t)->prefix##tree_edges, (t)->prefix##tree_thresholds, (t)->prefix##tree_leaves,            \
            (t)->prefix##tree_gains, (t)->prefix##tree_row                                                                        \
    }

static inline int drift_n_trees(const DriftTracker *t) { return t->n_rows > 1 ? DRIFT_MANY_TREES : DRIFT_TREES; }

static inline DriftTrees drift_trees_of(DriftTracker *t) {
    return DRIFT_TREES_OF(t, , t->n_cells < DRIFT_TREE_COLUMNS ? t->n_cells : DRIFT_TREE_COLUMNS);
}
static inline DriftTrees drift_context_trees_of(DriftTracker *t) { return DRIFT_TREES_OF(t, context_, t->n_context); }

/* There will be more trees: the next ones are new. */
static void drift_split_trees(const DriftTracker *t, DriftTrees f) {
    if (!t->forests) return;
    f.forest->next = f.forest->n_trees;
    drift_split(f.leaves, (size_t)t->trees * DRIFT_LEAVES, 1, 1);
    drift_split(f.scores, (size_t)f.capacity, 1, 1);
}
static void drift_trees_split(DriftTracker *t) { drift_split_trees(t, drift_trees_of(t)); }
static void drift_context_trees_split(DriftTracker *t) { drift_split_trees(t, drift_context_trees_of(t)); }

/* --- prediction ---------------------------------------------------------------------------------- */

/* The example's leaf in each tree. A missing value is NaN, and goes left. */
static void drift_tree_places(DriftTrees f, uint8_t *places) {
    int nodes[DRIFT_MANY_TREES] = {0}, n = (int)f.forest->n_trees;
    for (int level = 0; level < DRIFT_DEPTH; level++)
        for (int m = 0; m < n; m++) {
            int node = m * DRIFT_NODES + nodes[m], column = f.features[node];
            nodes[m] = 2 * nodes[m] + 1 + ((column >= 0) & (f.row[column >= 0 ? column : 0] > f.thresholds[node]));
        }
    for (int m = 0; m < n; m++) places[m] = (uint8_t)(nodes[m] - DRIFT_NODES);
}

/* Scores, which are 0 over rows that trees do not read. */
static void drift_score_trees(const DriftTracker *t, DriftTrees f, int read, double *scores) {
    uint8_t places[DRIFT_MANY_TREES];
    int n = read ? (int)f.forest->n_trees : 0;
    if (n) drift_tree_places(f, places);
    for (int r = 0; r < t->n_rows; r++) {
        float sum = 0.0f;
        for (int m = 0; m < n; m++) sum += f.leaves[((size_t)r * t->trees + m) * DRIFT_LEAVES + places[m]];
        scores[(size_t)r * t->members] = (double)sum;
    }
}
static void drift_trees_scores(DriftTracker *t, double *scores) {
    if (t->has_trees) drift_score_trees(t, drift_trees_of(t), t->forests, scores);
}
static void drift_context_trees_scores(DriftTracker *t, double *scores) {
    if (t->has_trees) drift_score_trees(t, drift_context_trees_of(t), t->forests && t->n_context, scores);
}

/* --- the window ---------------------------------------------------------------------------------- */

/* Move the rows to the start of their arrays. */
static void drift_compact_trees(const DriftTracker *t, DriftTrees f) {
    size_t first = (size_t)f.window->first, n = (size_t)f.window->n;
    if (!first) return;
    memmove(f.codes, f.codes + first * f.stride, n * f.stride);
    for (int m = 0; m < t->trees; m++) memmove(f.places + (size_t)m * f.capacity, f.places + (size_t)m * f.capacity + first, n);
    memmove(f.labels, f.labels + first, n * sizeof *f.labels);
    for (int r = 0; r < t->n_rows; r++) {
        float *scores = f.scores + (size_t)r * f.capacity;
        memmove(scores, scores + first, n * sizeof *scores);
    }
    memmove(f.weights, f.weights + first, n * sizeof *f.weights);
    memmove(f.missed, f.missed + first, n * sizeof *f.missed);
    f.window->first = 0;
}
static void drift_compact(DriftTracker *t) {
    if (!t->forests) return;
    drift_compact_trees(t, drift_trees_of(t));
    drift_compact_trees(t, drift_context_trees_of(t));
}

/* Number of edges below a value; 0 for a missing one. */
static int drift_code(const float *edges, int n, float value) {
    int low = 0;
    while (low < n) {
        int middle = (low + n) / 2;
        if (value > edges[middle])
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

static void drift_sort_floats(float *values, int n) {
    static const int gaps[] = {132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int i = gaps[g]; i < n; i++) {
            float value = values[i];
            int k = i;
            for (; k >= gaps[g] && values[k - gaps[g]] > value; k -= gaps[g]) values[k] = values[k - gaps[g]];
            values[k] = value;
        }
}

/* Compute a column's edges from the sample; `table` gets each old code's new one. */
static void drift_renew_column(DriftTrees f, int column, int n_sample, uint8_t *table) {
    float values[DRIFT_SAMPLE], old[DRIFT_BINS], *edges = f.edges + (size_t)column * (DRIFT_BINS - 1);
    int n = 0, distinct = 0, n_old = f.n_edges[column], n_edges = 0, few;
    memcpy(old, edges, (size_t)n_old * sizeof *old);
    for (int i = 0; i < n_sample; i++) {
        float value = f.sample[(size_t)column * DRIFT_SAMPLE + i];
        if (value < (float)DRIFT_COLUMN_MISSING) values[n++] = value;
    }
    drift_sort_floats(values, n);
    for (int i = 0; i < n; i++)
        if (!distinct || values[i] != values[distinct - 1]) values[distinct++] = values[i];
    few = distinct <= DRIFT_BINS;
    for (int b = 1; b < (few ? distinct : DRIFT_BINS); b++) {
        int i = few ? b - 1 : b * (distinct - 1) / DRIFT_BINS;
        float edge = 0.5f * (values[i] + values[i + 1]);
        if (!n_edges || edge > edges[n_edges - 1]) edges[n_edges++] = edge;
    }
    memset(edges + n_edges, 0, (size_t)(DRIFT_BINS - 1 - n_edges) * sizeof *edges);
    f.n_edges[column] = n_edges;
    table[0] = 0;
    for (int code = 1; code <= n_old; code++) /* the middle of its two edges; the last is just above its only one */
        table[code] = (uint8_t)drift_code(edges, n_edges, code < n_old ? 0.5f * (old[code - 1] + old[code]) : nextafterf(old[code - 1], INFINITY));
}

/* Renew the edges of columns from `first` up to `last`, and recode every row of the window. */
static void drift_renew_edges(DriftTrees f, int first, int last) {
    uint8_t tables[DRIFT_RENEWED][DRIFT_BINS], *codes = f.codes + (size_t)f.window->first * f.stride;
    int n_sample = f.forest->kept < DRIFT_SAMPLE ? (int)f.forest->kept : DRIFT_SAMPLE;
    for (int j = first; j < last; j++) drift_renew_column(f, j, n_sample, tables[j - first]);
    for (int i = 0; i < f.window->n; i++, codes += f.stride)
        for (int j = first; j < last; j++) codes[j] = tables[j - first][codes[j]];
}

/* The first edges: until now the window is the sample. */
static void drift_first_edges(DriftTrees f) {
    uint8_t table[DRIFT_BINS];
    for (int j = 0; j < f.columns; j++) {
        drift_renew_column(f, j, DRIFT_FEWEST, table);
        for (int i = 0; i < f.window->n && i < DRIFT_FEWEST; i++) {
            float value = f.sample[(size_t)j * DRIFT_SAMPLE + i];
            uint8_t code = value < (float)DRIFT_COLUMN_MISSING ? (uint8_t)drift_code(f.edges + (size_t)j * (DRIFT_BINS - 1), f.n_edges[j], value) : 0;
            f.codes[(size_t)(f.window->first + i) * f.stride + j] = code;
        }
    }
}

/* Append the example to the window, in which there is room. */
static void drift_keep_row(const DriftTracker *t, DriftTrees f, const double *scores, int number, float weight, float missed) {
    uint8_t places[DRIFT_MANY_TREES] = {0};
    int place, sampled = (int)(f.forest->kept % DRIFT_SAMPLE);
    uint64_t half = (uint64_t)t->largest_window / 2;
    if (f.window->n == t->largest_window) f.window->first++, f.window->n--;
    if (f.window->first + f.window->n == f.capacity) drift_compact_trees(t, f);
    place = f.window->first + f.window->n++;
    for (int j = 0; j < f.columns; j++) {
        float value = f.row[j];
        f.sample[(size_t)j * DRIFT_SAMPLE + sampled] = value == value ? value : (float)DRIFT_COLUMN_MISSING;
        f.codes[(size_t)place * f.stride + j] = (uint8_t)drift_code(f.edges + (size_t)j * (DRIFT_BINS - 1), f.n_edges[j], value);
    }
    drift_tree_places(f, places);
    for (int m = 0; m < t->trees; m++) f.places[(size_t)m * f.capacity + place] = places[m];
    for (int r = 0; r < t->n_rows; r++) f.scores[(size_t)r * f.capacity + place] = (float)scores[(size_t)r * t->members];
    f.labels[place] = number;
    f.weights[place] = weight;
    f.missed[place] = missed;
    if (++f.forest->kept != f.forest->renew) return;
    if (f.forest->kept == DRIFT_FEWEST)
        drift_first_edges(f);
    else
        f.forest->renewing = (uint64_t)f.columns;
    f.forest->renew += f.forest->kept < half ? f.forest->kept : half;
}

/* Keep only the newest 32, 64, ... rows if these are predicted far worse than the older ones. */
static void drift_forget(DriftTrees f) {
    const float *weights = f.weights + f.window->first, *missed = f.missed + f.window->first;
    int n = f.window->n, best = 0, next = DRIFT_FEWEST;
    double total = 0.0, sum = 0.0, squares = 0.0, newer = 0.0, newer_sum = 0.0, most = DRIFT_WORSE, mean, variance;
    for (int i = 0; i < n; i++) {
        double w = (double)weights[i], u = (double)missed[i];
        total += w, sum += w * u, squares += w * u * u;
    }
    mean = sum / total, variance = squares / total - mean * mean;
    if (variance < DRIFT_LEAST_VARIANCE) variance = DRIFT_LEAST_VARIANCE;
    for (int a = 1; a <= n / 2; a++) {
        double z, w = (double)weights[n - a];
        newer += w, newer_sum += w * (double)missed[n - a];
        if (a != next) continue;
        next *= 2;
        z = (newer_sum / newer - (sum - newer_sum) / (total - newer)) / sqrt(variance * (1.0 / a + 1.0 / (n - a)));
        if (z > most) most = z, best = a;
    }
    if (best) f.window->first += n - best, f.window->n = best;
}

/* --- a fit --------------------------------------------------------------------------------------- */

static uint64_t drift_next_draw(DriftForest *forest) { return drift_mix(forest->draws += drift_step); }

/* Probabilities of the log-odds or, of more classes, of each row of scores. */
DRIFT_CLONES static void drift_fit_odds(float *__restrict p, const float *__restrict scores, int n) {
    for (int i = 0; i < n; i++) p[i] = (float)(1.0 / (1.0 + drift_power_of_e(-(double)scores[i])));
}

DRIFT_CLONES static void drift_fit_powers(float *__restrict p, double *__restrict sums, const float *__restrict scores, const float *__restrict tops, int n) {
    for (int i = 0; i < n; i++) sums[i] += (double)(p[i] = (float)drift_power_of_e((double)scores[i] - (double)tops[i]));
}

/* Subtract the tree to be fitted from the scores, and compute probabilities of what is left. */
static void drift_fit_probabilities(DriftTracker *t, DriftTrees f, int tree) {
    int n = f.window->n, first = f.window->first;
    const uint8_t *places = f.places + (size_t)tree * f.capacity + first;
    for (int r = 0; r < t->n_rows; r++) {
        const float *leaves = f.leaves + ((size_t)r * t->trees + tree) * DRIFT_LEAVES;
        float *scores = f.scores + (size_t)r * f.capacity + first;
        for (int i = 0; i < n && tree < (int)f.forest->n_trees; i++) scores[i] -= leaves[places[i]];
        for (int i = 0; i < n; i++)
            if (!r || scores[i] > t->fit_tops[i]) t->fit_tops[i] = scores[i];
    }
    if (t->n_rows == 1) {
        drift_fit_odds(t->fit_probabilities, f.scores + first, n);
        return;
    }
    memset(t->fit_sums, 0, (size_t)n * sizeof *t->fit_sums);
    for (int r = 0; r < t->n_rows; r++)
        drift_fit_powers(t->fit_probabilities + (size_t)r * t->fitted, t->fit_sums, f.scores + (size_t)r * f.capacity + first, t->fit_tops, n);
    for (int r = 0; r < t->n_rows; r++) {
        float *p = t->fit_probabilities + (size_t)r * t->fitted;
        for (int i = 0; i < n; i++) p[i] = (float)((double)p[i] / t->fit_sums[i]);
    }
}

/* Gradients and curvatures of the rows; of more than two classes, those of their scores' sum with random signs. */
static void drift_fit_gradients(DriftTracker *t, DriftTrees f) {
    const int32_t *labels = f.labels + f.window->first;
    const float *weights = f.weights + f.window->first, *p = t->fit_probabilities;
    int n = f.window->n;
    if (t->n_rows > 1) {
        memset(t->fit_sums, 0, (size_t)n * sizeof *t->fit_sums);
        for (int r = 0; r < t->n_rows; r++) {
            double sign = t->fit_signs[r] = drift_next_draw(f.forest) >> 63 ? 1.0 : -1.0;
            for (int i = 0; i < n; i++) t->fit_sums[i] += sign * (double)p[(size_t)r * t->fitted + i];
        }
    }
    for (int i = 0; i < n; i++) {
        double mean = t->n_rows > 1 ? t->fit_sums[i] : (double)p[i];
        double g = (t->n_rows > 1 ? t->fit_signs[labels[i]] : (double)(labels[i] == 1)) - mean;
        double h = t->n_rows > 1 ? 1.0 - mean * mean : mean * (1.0 - mean), scale = (double)weights[i] * DRIFT_UNIT;
        t->fit_gradients[i] = (int32_t)rint(scale * g);
        t->fit_curvatures[i] = (int32_t)rint(scale * h);
        t->fit_rows[i] = i;
    }
}

/* Choose columns, half of them those of the largest gains so far, the others at random; returns their number. */
static int drift_choose_columns(DriftTrees f, int *columns) {
    int order[DRIFT_TREE_COLUMNS], d = f.columns, n = d < DRIFT_CHOSEN ? d : DRIFT_CHOSEN;
    for (int j = 0; j < d; j++) order[j] = j;
    for (int k = 0; n < d && k < n; k++) {
        int chosen = k, column;
        if (k < n / 2) {
            for (int j = k + 1; j < d; j++)
                if (f.gains[order[j]] > f.gains[order[chosen]]) chosen = j;
        } else
            chosen = k + drift_draw(&f.forest->draws, d - k);
        column = order[k], order[k] = order[chosen], order[chosen] = column;
    }
    for (int k = 0; k < n; k++) f.gains[columns[k] = order[k]] *= DRIFT_FADE;
    return n;
}

/* What the nodes of a tree have in common; sums of gradients and curvatures. */
typedef struct {
    DriftTracker *t;
    DriftTrees f;
    int tree, n_columns, columns[DRIFT_CHOSEN];
} DriftFit;
typedef struct {
    int64_t g, h;
} DriftBin;

/* A node of so little curvature stays whole. */
static inline int drift_is_small(DriftBin total) { return (double)total.h / DRIFT_UNIT < 2.0 * DRIFT_RIDGE; }

static void drift_histogram(const DriftFit *fit, const int32_t *rows, int n, DriftBin *histogram) {
    const DriftTracker *t = fit->t;
    const uint8_t *codes = fit->f.codes + (size_t)fit->f.window->first * fit->f.stride;
    for (int c = 0; c < fit->n_columns; c++)
        memset(histogram + c * DRIFT_BINS, 0, (size_t)(fit->f.n_edges[fit->columns[c]] + 1) * sizeof *histogram);
    for (int k = 0; k < n; k++) {
        const uint8_t *row = codes + (size_t)rows[k] * fit->f.stride;
        int64_t g = t->fit_gradients[rows[k]], h = t->fit_curvatures[rows[k]];
        for (int c = 0; c < fit->n_columns; c++) {
            DriftBin *bin = histogram + c * DRIFT_BINS + row[fit->columns[c]];
            bin->g += g, bin->h += h;
        }
    }
}

/* Whether a split's gain comes near the best one. `least` is a little less than the best gain plus the parent's part.
   Multiplications replace the divisions, because divisions take long. */
static DRIFT_INLINE int drift_is_near(double left_g, double left_h, double g, double h, double least) {
    double right_g = g - left_g, right_h = h - left_h, left_w = left_h + DRIFT_RIDGE, right_w = right_h + DRIFT_RIDGE;
    return (left_h >= DRIFT_RIDGE) & (right_h >= DRIFT_RIDGE) & (left_g * left_g * right_w + right_g * right_g * left_w >= left_w * right_w * least);
}

/* Sums of gradients and curvatures left of each split of a column; returns whether any comes near the best one. */
DRIFT_CLONES static int drift_left_sums(double *__restrict left_g, double *__restrict left_h, const DriftBin *__restrict bins, int n,
                                       double g, double h, double least) {
    int64_t sums_g[DRIFT_BINS], sums_h[DRIFT_BINS];
    int near = 0;
    DriftBin sum = {0, 0};
    for (int b = 0; b < n; b++) sums_g[b] = sum.g += bins[b].g, sums_h[b] = sum.h += bins[b].h;
    for (int b = 0; b < n; b++) {
        left_g[b] = (double)sums_g[b] / DRIFT_UNIT, left_h[b] = (double)sums_h[b] / DRIFT_UNIT;
        near |= drift_is_near(left_g[b], left_h[b], g, h, least);
    }
    return near;
}

/* The best split of a node: returns its place among the chosen columns, or -1 if the node stays whole. */
static int drift_best_split(const DriftFit *fit, const DriftBin *histogram, DriftBin total, int *code, DriftBin *left) {
    double g = (double)total.g / DRIFT_UNIT, h = (double)total.h / DRIFT_UNIT, parent = g * g / (h + DRIFT_RIDGE), most = 1e-6, least = (most + parent) * (1.0 - 1e-12);
    double left_g[DRIFT_BINS], left_h[DRIFT_BINS];
    int best = -1;
    for (int c = 0; c < fit->n_columns; c++) {
        int n = fit->f.n_edges[fit->columns[c]];
        if (!drift_left_sums(left_g, left_h, histogram + c * DRIFT_BINS, n, g, h, least)) continue;
        for (int b = 0; b < n; b++) {
            double right_g = g - left_g[b], gain;
            if (!drift_is_near(left_g[b], left_h[b], g, h, least)) continue;
            gain = left_g[b] * left_g[b] / (left_h[b] + DRIFT_RIDGE) + right_g * right_g / (h - left_h[b] + DRIFT_RIDGE) - parent;
            if (gain > most) most = gain, least = (most + parent) * (1.0 - 1e-12), best = c, *code = b;
        }
    }
    if (best < 0) return best;
    fit->f.gains[fit->columns[best]] += most;
    for (int b = 0; b <= *code; b++) left->g += histogram[best * DRIFT_BINS + b].g, left->h += histogram[best * DRIFT_BINS + b].h;
    return best;
}

/* Compute the histograms of the children that may be split. One of these is the parent's without its sibling's. */
static void drift_children(const DriftFit *fit, const int32_t *rows, const int *n, const DriftBin *totals, const DriftBin *parent, DriftBin *children) {
    int few = n[0] > n[1];
    if (!drift_is_small(totals[few]) || !drift_is_small(totals[!few]))
        drift_histogram(fit, rows + (few ? n[0] : 0), n[few], children + few * DRIFT_HISTOGRAM);
    for (int c = 0; c < fit->n_columns && !drift_is_small(totals[!few]); c++) {
        const DriftBin *less = children + few * DRIFT_HISTOGRAM + c * DRIFT_BINS, *all = parent + c * DRIFT_BINS;
        DriftBin *rest = children + !few * DRIFT_HISTOGRAM + c * DRIFT_BINS;
        for (int b = 0; b <= fit->f.n_edges[fit->columns[c]]; b++) rest[b].g = all[b].g - less[b].g, rest[b].h = all[b].h - less[b].h;
    }
}

/* Split a node with its histogram, and what follows from it. Each level has the histograms of two children. */
static void drift_grow_tree(const DriftFit *fit, int node, int level, int32_t *rows, int n, DriftBin total, const DriftBin *histogram) {
    const DriftTrees *f = &fit->f;
    const uint8_t *codes = f->codes + (size_t)f->window->first * f->stride;
    DriftBin *children = (DriftBin *)fit->t->fit_histograms + (size_t)(2 * level + 1) * DRIFT_HISTOGRAM, totals[2] = {{0, 0}, {0, 0}};
    int code = 0, column, sizes[2] = {0, 0}, best = -1;
    if (level < DRIFT_DEPTH && !drift_is_small(total)) best = drift_best_split(fit, histogram, total, &code, &totals[0]);
    if (best < 0) {
        uint8_t *places = f->places + (size_t)fit->tree * f->capacity + f->window->first;
        for (; level < DRIFT_DEPTH; level++) node = 2 * node + 1;
        for (int k = 0; k < n; k++) places[rows[k]] = (uint8_t)(node - DRIFT_NODES);
        return;
    }
    column = fit->columns[best];
    f->features[fit->tree * DRIFT_NODES + node] = column;
    f->thresholds[fit->tree * DRIFT_NODES + node] = f->edges[(size_t)column * (DRIFT_BINS - 1) + code];
    for (int k = 0; k < n; k++) { /* without branches, as neither side is likelier */
        int32_t row = rows[k];
        int right = codes[(size_t)row * f->stride + column] > code;
        fit->t->fit_spare[sizes[1]] = rows[sizes[0]] = row;
        sizes[0] += !right, sizes[1] += right;
    }
    memcpy(rows + sizes[0], fit->t->fit_spare, (size_t)sizes[1] * sizeof *rows);
    totals[1].g = total.g - totals[0].g, totals[1].h = total.h - totals[0].h;
    if (level + 1 < DRIFT_DEPTH) drift_children(fit, rows, sizes, totals, histogram, children);
    drift_grow_tree(fit, 2 * node + 1, level + 1, rows, sizes[0], totals[0], children);
    drift_grow_tree(fit, 2 * node + 2, level + 1, rows + sizes[0], sizes[1], totals[1], children + DRIFT_HISTOGRAM);
}

/* Compute the leaves of the new tree, and add them to the scores. */
static void drift_fit_leaves(DriftTracker *t, DriftTrees f, int tree) {
    int n = f.window->n, first = f.window->first;
    const uint8_t *places = f.places + (size_t)tree * f.capacity + first;
    for (int r = 0; r < t->n_rows; r++) {
        float *leaves = f.leaves + ((size_t)r * t->trees + tree) * DRIFT_LEAVES, *scores = f.scores + (size_t)r * f.capacity + first;
        double top[DRIFT_LEAVES] = {0}, bottom[DRIFT_LEAVES] = {0};
        int row_class = t->n_rows > 1 ? r : 1;
        for (int i = 0; i < n; i++) {
            double p = (double)t->fit_probabilities[(size_t)r * t->fitted + i], w = (double)f.weights[first + i];
            top[places[i]] += w * ((double)(f.labels[first + i] == row_class) - p);
            bottom[places[i]] += w * p * (1.0 - p);
        }
        for (int leaf = 0; leaf < DRIFT_LEAVES; leaf++)
            leaves[leaf] = (float)(DRIFT_SHRINKAGE * drift_clipped(top[leaf] / (bottom[leaf] + DRIFT_RIDGE), DRIFT_LEAF_LIMIT));
        for (int i = 0; i < n; i++) scores[i] += leaves[places[i]];
    }
}

/* Fit the oldest tree anew, to what the others leave. */
static void drift_fit_tree(DriftTracker *t, DriftTrees f) {
    DriftFit fit = {t, f, (int)f.forest->next, 0, {0}};
    DriftBin total = {0, 0};
    drift_forget(f);
    drift_fit_probabilities(t, f, fit.tree);
    drift_fit_gradients(t, f);
    fit.n_columns = drift_choose_columns(f, fit.columns);
    for (int node = 0; node < DRIFT_NODES; node++) f.features[fit.tree * DRIFT_NODES + node] = -1, f.thresholds[fit.tree * DRIFT_NODES + node] = 0.0f;
    for (int i = 0; i < f.window->n; i++) total.g += t->fit_gradients[i], total.h += t->fit_curvatures[i];
    drift_histogram(&fit, t->fit_rows, f.window->n, (DriftBin *)t->fit_histograms);
    drift_grow_tree(&fit, 0, 0, t->fit_rows, f.window->n, total, (const DriftBin *)t->fit_histograms);
    drift_fit_leaves(t, f, fit.tree);
    if (fit.tree == (int)f.forest->n_trees) f.forest->n_trees++;
    f.forest->next = (f.forest->next + 1) % (uint64_t)drift_n_trees(t);
}

/* --- learning ------------------------------------------------------------------------------------ */

static void drift_learn_trees(DriftTracker *t, DriftTrees f, int member, int number, double w) {
    double missed = 1.0 - t->softmax[(size_t)number * t->members + member], chance = drift_clipped(DRIFT_KEPT * missed, 1.0);
    if (chance < DRIFT_LEAST_KEPT) chance = DRIFT_LEAST_KEPT;
    w = w < DRIFT_LEAST_TREE_WEIGHT ? DRIFT_LEAST_TREE_WEIGHT : w > DRIFT_MOST_TREE_WEIGHT ? DRIFT_MOST_TREE_WEIGHT : w;
    if (chance >= 1.0 || (double)(drift_next_draw(f.forest) >> 11) * 0x1p-53 < chance)
        drift_keep_row(t, f, t->scores + member, number, (float)(w / chance), (float)missed);
    if (f.forest->renewing) {
        int last = (int)f.forest->renewing, first = last > DRIFT_RENEWED ? last - DRIFT_RENEWED : 0;
        drift_renew_edges(f, first, last);
        f.forest->renewing = (uint64_t)first;
    }
    f.forest->since++;
    if (f.forest->kept < DRIFT_FEWEST || f.forest->since * (uint64_t)drift_n_trees(t) < (uint64_t)f.window->n) return;
    f.forest->since = 0;
    drift_fit_tree(t, f);
}

static void drift_trees_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (t->forests) drift_learn_trees(t, drift_trees_of(t), first, number, w);
}
static void drift_context_trees_learn(DriftTracker *t, int first, int number, double w, double loss) {
    (void)loss;
    if (t->forests && t->n_context) drift_learn_trees(t, drift_context_trees_of(t), first, number, w);
}

#endif
