/* The tracker: state, prediction by members and gates, and the update by an example.

   Arrays are indexed by row of scores and member, or by class and member. Inner loops run over members, independently, so
   that compilers vectorise them. Steps that may fail precede `drift_learn`. */

#ifndef DRIFT_TRACKER_H
#define DRIFT_TRACKER_H

#include "tables.h"
#include "numerics.h"
#include "supports.h"
#include "hats.h"

enum { DRIFT_GATES = DRIFT_N_GATE_WALKS, DRIFT_GATE_MAPS = DRIFT_N_SLOPES * DRIFT_N_FLOORS, DRIFT_N_MAPS = DRIFT_GATES * DRIFT_GATE_MAPS };

/* The scores that gates and maps learn from. */
enum { DRIFT_NO_SCORES = 0, DRIFT_CURRENT_SCORES = 1, DRIFT_TICKET_SCORES = 2 };

/* The rows of a window lie one behind the other, oldest first. */
typedef struct {
    int first, n;
} DriftWindow;

typedef struct {
    DRIFT_ARRAYS
    DriftSupports supports;
    /* The point: numbers of features, of cells, and of inputs with the context, 0 without one; squared norm; splines' inputs. */
    int n_values, n_cells, n_context;
    double squared_norm;
    DriftHats hats, context_hats;
    int sparse, n_classes, n_rows; /* classes, and rows of scores */
    int n_used; /* slots, the free one included */
    int inserted, evicted, nearest; /* slots, or -1 */
    int prediction;
    uint64_t draws;
    DriftWindow tree_window, context_tree_window;
    int has_trees, largest_window; /* whether there are members of trees, over sparse rows without any */
} DriftTracker;

static inline int drift_rows_of(int n_classes) { return n_classes > 2 ? n_classes + 1 : 1; }

/* Number of classes with a score; two classes share a row. */
static inline int drift_scored(const DriftTracker *t) { return t->n_rows > 1 ? t->n_rows : 2; }

/* Minus the gradient of a member's log loss in its score of a row. */
static inline double drift_gradient(const DriftTracker *t, int member, int row, int number) {
    int row_class = t->n_rows > 1 ? row : 1;
    return (number == row_class) - t->softmax[row_class * t->members + member];
}

/* The curvature of a member's log loss: its probability of a row's class, times that of the others. */
static inline double drift_curvature(const DriftTracker *t, int member, int row) {
    double p = t->softmax[(t->n_rows > 1 ? row : 1) * t->members + member];
    return p * (1.0 - p);
}

/* Split the only row into rows of two classes and of the next one: weights are halved, other numbers copied. A row has `size`
   numbers; in each `cell` the first `weights` are weights. */
static void drift_split(float *rows, size_t size, size_t cell, size_t weights) {
    for (size_t i = 0; i < size; i++) {
        rows[2 * size + i] = 0.0f;
        if (i % cell < weights) {
            rows[size + i] = 0.5f * rows[i];
            rows[i] = 0.0f - rows[size + i]; /* no -0 in unused room */
        } else
            rows[size + i] = rows[i];
    }
}

#include "kernels.h"
#include "linear.h"
#include "splines.h"
#include "trees.h"

/* --- prediction ---------------------------------------------------------------------------------- */

/* Probabilities of a gate, by class with a score. */
static void drift_gate_probabilities(DriftTracker *t, const double *gate, double *probabilities) {
    int n = t->members, classes = drift_scored(t);
    double top = -INFINITY, total = 0.0;
    for (int r = 0; r < t->n_rows; r++) {
        double sum = 0.0;
        for (int e = 0; e < n; e++) sum += gate[e] * t->scores[r * n + e];
        probabilities[r] = sum;
    }
    if (t->n_rows == 1) {
        probabilities[1] = 0.5 * probabilities[0];
        probabilities[0] = -probabilities[1];
    }
    for (int c = 0; c < classes; c++)
        if (probabilities[c] > top) top = probabilities[c];
    for (int c = 0; c < classes; c++) {
        double x = probabilities[c] - top;
        total += probabilities[c] = drift_power_of_e(x > -700.0 ? x : -700.0);
    }
    for (int c = 0; c < classes; c++) probabilities[c] /= total;
}

static void drift_gates_probabilities(DriftTracker *t) {
    for (int g = 0; g < DRIFT_GATES; g++) drift_gate_probabilities(t, t->gates + (size_t)g * t->members, t->probabilities + (size_t)g * t->classes);
}

/* A gate's probability, bounded from below by DRIFT_LEAST_PROBABILITY; all still sum to 1. */
static inline double drift_clipped_probability(const DriftTracker *t, double p) {
    int classes = drift_scored(t);
    double least = 0.5 / classes < DRIFT_LEAST_PROBABILITY ? 0.5 / classes : DRIFT_LEAST_PROBABILITY;
    return least + (1.0 - classes * least) * p;
}

/* Map a gate's probability: powers, scaled to sum to 1 over the classes, mixed with floors. */
static void drift_apply_maps(const DriftTracker *t, double p, const double *sums, double *mapped) {
    for (int s = 0; s < DRIFT_N_SLOPES; s++) {
        double power = (s ? p * p : p) / sums[s];
        for (int f = 0; f < DRIFT_N_FLOORS; f++) mapped[s * DRIFT_N_FLOORS + f] = (1.0 - DRIFT_FLOORS[f]) * power + DRIFT_FLOORS[f] / t->n_classes;
    }
}

/* Sums of a gate's powers over the classes. */
static void drift_power_sums(const DriftTracker *t, const double *probabilities, double *sums) {
    sums[0] = sums[1] = 0.0;
    for (int c = 0; c < t->n_classes; c++) {
        double p = drift_clipped_probability(t, probabilities[c]);
        sums[0] += p, sums[1] += p * p;
    }
}

/* Mix all maps by class, into the last row of `probabilities`. */
static void drift_mix_maps(DriftTracker *t) {
    double *mixed = t->probabilities + (size_t)DRIFT_GATES * t->classes, mapped[DRIFT_GATE_MAPS], sums[DRIFT_N_SLOPES];
    for (int c = 0; c < t->n_classes; c++) mixed[c] = 0.0;
    for (int g = 0; g < DRIFT_GATES; g++) {
        const double *probabilities = t->probabilities + (size_t)g * t->classes, *weights = t->maps + g * DRIFT_GATE_MAPS;
        drift_power_sums(t, probabilities, sums);
        for (int c = 0; c < t->n_classes; c++) {
            drift_apply_maps(t, drift_clipped_probability(t, probabilities[c]), sums, mapped);
            for (int m = 0; m < DRIFT_GATE_MAPS; m++) mixed[c] += weights[m] * mapped[m];
        }
    }
}

static void drift_predict(DriftTracker *t) {
    double *first = t->scores, *mixed = t->probabilities + (size_t)DRIFT_GATES * t->classes;
#define DRIFT_SCORES(family) drift_##family##_scores(t, first), first += DRIFT_COUNT_##family;
    DRIFT_FAMILIES(DRIFT_SCORES)
#undef DRIFT_SCORES
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
    drift_gates_probabilities(t);
    drift_mix_maps(t);
    t->prediction = t->n_classes ? 0 : -1;
    for (int c = 1; c < t->n_classes; c++)
        if (mixed[c] > mixed[t->prediction]) t->prediction = c;
}

/* The mixed probability of a class. */
static double drift_probability(const DriftTracker *t, int number) { return t->probabilities[(size_t)DRIFT_GATES * t->classes + number]; }

/* --- learning ------------------------------------------------------------------------------------ */

/* The first gate's log loss; a new third class has no score. */
static inline double drift_loss(const DriftTracker *t, int number) {
    return -log(number < drift_scored(t) ? drift_clipped_probability(t, t->probabilities[number]) : DRIFT_LEAST_PROBABILITY);
}

/* Whether an example becomes a support. */
static inline int drift_inserts(const DriftTracker *t, double loss) {
    return loss > DRIFT_INSERTION * (DRIFT_LOSS_DECAY * t->sums->mean_loss + loss) / (DRIFT_LOSS_DECAY * t->sums->mean_weight + 1.0);
}

/* One step of a gate, an extended Kalman filter of weights that follow a random walk. Minus the gradient of its log loss in
   the weights is `others`, the probability of the other classes, times `z`, the label's scores minus the others' mean. */
static DRIFT_INLINE void drift_filter_of(double *__restrict weights, double *__restrict covariance, const double *__restrict z,
                                         double *__restrict gain, int n, double others, double w, double walk) {
    double variance = 0.0, curvature = w * others * (1.0 - others), factor;
    for (int e = 0; e < n; e++) {
        covariance[e * n + e] += walk;
        gain[e] = 0.0;
    }
    for (int c = 0; c < n; c++) /* it is symmetric */
        for (int e = 0; e < n; e++) gain[e] += covariance[c * n + e] * z[c];
    for (int e = 0; e < n; e++) variance += gain[e] * z[e];
    factor = 1.0 / (1.0 + curvature * variance);
    for (int c = 0; c < n; c++)
        for (int e = 0; e < n; e++) covariance[c * n + e] -= curvature * factor * gain[c] * gain[e];
    for (int e = 0; e < n; e++) weights[e] += w * others * factor * gain[e];
}

/* The same, compiled for the default numbers of members, with trees and without. */
DRIFT_CLONES static void drift_filter(double *__restrict weights, double *__restrict covariance, const double *__restrict z,
                                     double *__restrict gain, int n, double others, double w, double walk) {
    if (n == DRIFT_USUAL)
        drift_filter_of(weights, covariance, z, gain, DRIFT_USUAL, others, w, walk);
    else if (n == DRIFT_USUAL_SMALL)
        drift_filter_of(weights, covariance, z, gain, DRIFT_USUAL_SMALL, others, w, walk);
    else
        drift_filter_of(weights, covariance, z, gain, n, others, w, walk);
}

static void drift_learn_gate(DriftTracker *t, int g, int number, double w, double walk) {
    int n = t->members;
    const double *probabilities = t->probabilities + (size_t)g * t->classes, *scores = t->scores + (size_t)number * n;
    double others = 0.0, *z = t->margins;
    for (int c = 0; c < drift_scored(t); c++)
        if (c != number) others += probabilities[c];
    if (!(others > DRIFT_CONFIDENT)) return; /* the gradient is 0, and the mean undefined */
    for (int e = 0; e < n; e++) z[e] = t->n_rows > 1 ? scores[e] : number ? t->scores[e] : -t->scores[e];
    for (int r = 0; t->n_rows > 1 && r < t->n_rows; r++)
        for (int e = 0; r != number && e < n; e++) z[e] -= probabilities[r] / others * t->scores[(size_t)r * n + e];
    drift_filter(t->gates + (size_t)g * n, t->covariances + (size_t)g * n * n, z, t->gains, n, others, w, walk);
}

/* Multiply the maps' weights by their probabilities of the label; a share is redistributed. */
static void drift_learn_maps(DriftTracker *t, int number, double w) {
    double mapped[DRIFT_N_MAPS], sums[DRIFT_N_SLOPES], most = 0.0, sum = 0.0;
    for (int g = 0; g < DRIFT_GATES; g++) {
        const double *probabilities = t->probabilities + (size_t)g * t->classes;
        drift_power_sums(t, probabilities, sums);
        drift_apply_maps(t, drift_clipped_probability(t, probabilities[number]), sums, mapped + g * DRIFT_GATE_MAPS);
    }
    for (int m = 0; m < DRIFT_N_MAPS; m++)
        if (mapped[m] > most) most = mapped[m];
    for (int m = 0; m < DRIFT_N_MAPS; m++) sum += t->maps[m] *= w == 1.0 ? mapped[m] / most : pow(mapped[m] / most, w);
    for (int m = 0; m < DRIFT_N_MAPS; m++)
        t->maps[m] = (1.0 - DRIFT_MAP_SHARE) * (t->maps[m] / sum) + DRIFT_MAP_SHARE / DRIFT_N_MAPS;
}

/* Swap current scores and the ticket's. */
static void drift_swap_scores(DriftTracker *t) {
    double *scores = t->scores;
    t->scores = t->ticket_scores;
    t->ticket_scores = scores;
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
}

/* Read a ticket's scores, of so many `rows`. Classes that are newer had the scores of its last row. */
static void drift_read_ticket(DriftTracker *t, const float *scores, int rows) {
    int n = t->members;
    for (int r = 0; r < t->n_rows; r++)
        for (int e = 0; e < n; e++) {
            double *score = t->ticket_scores + (size_t)r * n + e;
            if (rows == 1 && t->n_rows > 1)
                *score = r == 0 ? -0.5 * scores[e] : r == 1 ? 0.5 * scores[e] : 0.0;
            else
                *score = scores[(size_t)(r < rows ? r : rows - 1) * n + e];
        }
}

/* Record each member's loss, and a mistake if another class has its largest score. */
static void drift_update_records(DriftTracker *t, int number, double w, double loss, int evidence) {
    int n = t->members, scored = number < drift_scored(t);
    for (int e = 0; e < n; e++) t->predicted[e] = t->n_rows == 1 && t->n_classes > 1 && t->scores[e] > 0.0;
    for (int r = 1; t->n_rows > 1 && r < t->n_classes; r++)
        for (int e = 0; e < n; e++)
            if (t->scores[r * n + e] > t->scores[t->predicted[e] * n + e]) t->predicted[e] = r;
    for (int e = 0; e < n; e++) t->example_losses[e] = loss;
    if (scored) drift_logs(t->example_losses, t->softmax + number * n, n, DRIFT_LEAST_PROBABILITY, w);
    for (int e = 0; evidence && e < n; e++) {
        t->losses[e] += t->example_losses[e];
        t->errors[e] += t->predicted[e] == number ? 0.0 : w;
    }
    t->sums->total += evidence ? w : 0.0;
    t->sums->learnt += 1.0;
    t->sums->mean_loss = DRIFT_LOSS_DECAY * t->sums->mean_loss + loss;
    t->sums->mean_weight = DRIFT_LOSS_DECAY * t->sums->mean_weight + 1.0;
}

/* Add a class: it gets the last row, which is copied for the next one. Memory is reserved. */
static void drift_add_class(DriftTracker *t) {
    size_t n = (size_t)t->members, rows;
    t->n_classes++;
    if (t->n_classes < 3) return;
    if (t->n_classes == 3) {
#define DRIFT_SPLIT(family) drift_##family##_split(t);
        DRIFT_FAMILIES(DRIFT_SPLIT)
#undef DRIFT_SPLIT
        for (size_t e = 0; e < n; e++) {
            t->scores[n + e] = 0.5 * t->scores[e], t->scores[2 * n + e] = 0.0;
            t->scores[e] *= -0.5;
        }
        t->n_rows = 3;
    }
    rows = (size_t)t->n_rows++;
#define DRIFT_COPY_ROW(array, size) memcpy(t->array + rows * (size), t->array + (rows - 1) * (size), (size) * sizeof *t->array);
    DRIFT_BY_ROWS(DRIFT_COPY_ROW)
#undef DRIFT_COPY_ROW
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
}

/* Learn the example that was read and predicted; its class's row is reserved. Maps learn from current scores, from the
   ticket's, or not at all without a ticket while others wait. Gates learn likewise; with a ticket, from both by their shares:
   the ticket's scores include the delay, current ones the rule of now. */
static void drift_learn(DriftTracker *t, int number, double w, int evidence) {
    double loss = w * drift_loss(t, number);
    int first = 0, late = evidence == DRIFT_TICKET_SCORES, scored = number < drift_scored(t);
    if (late) {
        drift_swap_scores(t);
        drift_gates_probabilities(t);
    }
    if (evidence && scored) {
        if (number < t->n_classes && t->n_classes > 1) drift_learn_maps(t, number, w);
        for (int g = 0; g < DRIFT_GATES; g++) drift_learn_gate(t, g, number, late ? w * (1.0 - DRIFT_LATE_CURRENT_SHARE[g]) : w, t->walks[g]);
    }
    drift_update_records(t, number, w, loss, evidence);
    if (late) {
        drift_swap_scores(t);
        drift_gates_probabilities(t);
        for (int g = 0; scored && g < DRIFT_GATES; g++) drift_learn_gate(t, g, number, w * DRIFT_LATE_CURRENT_SHARE[g], 0.0);
    }
    if (number == t->n_classes) drift_add_class(t);
#define DRIFT_LEARN(family) drift_##family##_learn(t, first, number, w, loss), first += DRIFT_COUNT_##family;
    DRIFT_FAMILIES(DRIFT_LEARN)
#undef DRIFT_LEARN
}

#endif
