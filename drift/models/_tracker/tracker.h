/* The tracker: its state, the gate over its members, and what it learns from an example.

   Arrays are by row of scores and member, or by class and member. Loops run over the members inside, each by itself,
   so that they become vectors. Whatever may fail has been done before `drift_learn` is called. */

#ifndef DRIFT_TRACKER_H
#define DRIFT_TRACKER_H

#include "tables.h"
#include "numerics.h"
#include "supports.h"
#include "hats.h"

enum { DRIFT_GATES = DRIFT_N_GATE_WALKS, DRIFT_GATE_MAPS = DRIFT_N_SLOPES * DRIFT_N_FLOORS, DRIFT_N_MAPS = DRIFT_GATES * DRIFT_GATE_MAPS };

/* What gates and maps are told by an example. */
enum { DRIFT_NOTHING = 0, DRIFT_SAYS = 1, DRIFT_SAID = 2 };

typedef struct {
    DRIFT_ARRAYS
    DriftSupports supports;
    /* Of the example read last: numbers of its features, of its cells, and of those with the context, 0 where there is none;
       squared norm; what the splines read. */
    int n_values, n_cells, n_context;
    double own;
    DriftHats hats, context_hats;
    int sparse, known, n_rows; /* classes met, and scores of a member */
    int n_used; /* slots, those that are free included */
    int inserted, evicted, nearest; /* slots, or -1 */
    int prediction;
    uint64_t draws;
} DriftTracker;

static inline int drift_rows_of(int known) { return known > 2 ? known + 1 : 1; }

/* Number of classes that have a score: two share one. */
static inline int drift_scored(const DriftTracker *t) { return t->n_rows > 1 ? t->n_rows : 2; }

/* Number of members of a family: of the kernel experts it follows from the parameters. */
static inline int drift_count_of(const DriftTracker *t, int count) { return count ? count : t->experts; }

/* Minus the gradient of a member's log loss in its score of a row. */
static inline double drift_gradient(const DriftTracker *t, int member, int row, int number) {
    int own = t->n_rows > 1 ? row : 1;
    return (number == own) - t->softmax[own * t->members + member];
}

/* A member's probability of a row's class, times that of the others: the curvature of its log loss. */
static inline double drift_curvature(const DriftTracker *t, int member, int row) {
    double p = t->softmax[(t->n_rows > 1 ? row : 1) * t->members + member];
    return p * (1.0 - p);
}

/* One score's numbers become those of two classes and of one to come. Of the `size` numbers of a row those before `weights`
   in each `cell` are weights. */
static void drift_part(float *rows, size_t size, size_t cell, size_t weights) {
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

/* --- prediction ---------------------------------------------------------------------------------- */

/* Probabilities of a gate, by class with a score. */
static void drift_open_gate(DriftTracker *t, const double *gate, double *chances) {
    int n = t->members, classes = drift_scored(t);
    double top = -INFINITY, total = 0.0;
    for (int r = 0; r < t->n_rows; r++) {
        double sum = 0.0;
        for (int e = 0; e < n; e++) sum += gate[e] * t->scores[r * n + e];
        chances[r] = sum;
    }
    if (t->n_rows == 1) {
        chances[1] = 0.5 * chances[0];
        chances[0] = -chances[1];
    }
    for (int c = 0; c < classes; c++)
        if (chances[c] > top) top = chances[c];
    for (int c = 0; c < classes; c++) {
        double x = chances[c] - top;
        total += chances[c] = drift_power_of_e(x > -700.0 ? x : -700.0);
    }
    for (int c = 0; c < classes; c++) chances[c] /= total;
}

static void drift_open_gates(DriftTracker *t) {
    for (int g = 0; g < DRIFT_GATES; g++) drift_open_gate(t, t->gates + (size_t)g * t->members, t->chances + (size_t)g * t->classes);
}

/* A gate's probability of a class with a score as it counts: no less than DRIFT_CLIP, and all sum to 1. */
static inline double drift_clipped_chance(const DriftTracker *t, double chance) {
    int classes = drift_scored(t);
    double least = 0.5 / classes < DRIFT_CLIP ? 0.5 / classes : DRIFT_CLIP;
    return least + (1.0 - classes * least) * chance;
}

/* What each map makes of a gate's probability: its powers, scaled to sum to 1 over the classes met, and a floor. */
static void drift_map(const DriftTracker *t, double chance, const double *sums, double *mapped) {
    for (int s = 0; s < DRIFT_N_SLOPES; s++) {
        double p = (s ? chance * chance : chance) / sums[s];
        for (int f = 0; f < DRIFT_N_FLOORS; f++) mapped[s * DRIFT_N_FLOORS + f] = (1.0 - DRIFT_FLOORS[f]) * p + DRIFT_FLOORS[f] / t->known;
    }
}

/* The mixture of all maps, by class met, into the last row of `chances`; of a class `number` what each map says. */
static void drift_mix_maps(DriftTracker *t, int number, double *mapped) {
    double *mixed = t->chances + (size_t)DRIFT_GATES * t->classes, own[DRIFT_GATE_MAPS];
    for (int c = 0; c < t->known; c++) mixed[c] = 0.0;
    for (int g = 0; g < DRIFT_GATES; g++) {
        const double *chances = t->chances + (size_t)g * t->classes, *weights = t->maps + g * DRIFT_GATE_MAPS;
        double sums[DRIFT_N_SLOPES] = {0};
        for (int c = 0; c < t->known; c++) {
            double chance = drift_clipped_chance(t, chances[c]);
            sums[0] += chance, sums[1] += chance * chance;
        }
        for (int c = 0; c < t->known; c++) {
            drift_map(t, drift_clipped_chance(t, chances[c]), sums, own);
            for (int m = 0; m < DRIFT_GATE_MAPS; m++) mixed[c] += weights[m] * own[m];
            if (c == number) memcpy(mapped + g * DRIFT_GATE_MAPS, own, sizeof own);
        }
    }
}

static void drift_predict(DriftTracker *t) {
    double *first = t->scores, *mixed = t->chances + (size_t)DRIFT_GATES * t->classes;
#define DRIFT_SCORES(family) drift_##family##_scores(t, first), first += drift_count_of(t, DRIFT_COUNT_##family);
    DRIFT_FAMILIES(DRIFT_SCORES)
#undef DRIFT_SCORES
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
    drift_open_gates(t);
    drift_mix_maps(t, -1, NULL);
    t->prediction = t->known ? 0 : -1;
    for (int c = 1; c < t->known; c++)
        if (mixed[c] > mixed[t->prediction]) t->prediction = c;
}

/* The probability of a class met. */
static double drift_probability(const DriftTracker *t, int number) { return t->chances[(size_t)DRIFT_GATES * t->classes + number]; }

/* --- learning ------------------------------------------------------------------------------------ */

/* The first gate's log loss; a third class had no score. */
static inline double drift_loss(const DriftTracker *t, int number) {
    return -log(number < drift_scored(t) ? drift_clipped_chance(t, t->chances[number]) : DRIFT_CLIP);
}

/* Whether an example is worth a support. */
static inline int drift_inserts(const DriftTracker *t, double loss) {
    return loss > DRIFT_INSERTION * (DRIFT_MEMORY * t->sums->mean_loss + loss) / (DRIFT_MEMORY * t->sums->mean_weight + 1.0);
}

/* One step of a gate: an extended Kalman filter of weights that walk. The gradient of its log loss in them is `others`, the
   probability of all other classes, times `z`, by how much the class's scores are above the mean of those. */
static DRIFT_INLINE void drift_filter_of(double *__restrict weights, double *__restrict covariance, const double *__restrict z,
                                         double *__restrict gain, int n, double others, double w, double walk) {
    double variance = 0.0, curvature = w * others * (1.0 - others), share;
    for (int e = 0; e < n; e++) {
        covariance[e * n + e] += walk;
        gain[e] = 0.0;
    }
    for (int c = 0; c < n; c++) /* it is symmetric */
        for (int e = 0; e < n; e++) gain[e] += covariance[c * n + e] * z[c];
    for (int e = 0; e < n; e++) variance += gain[e] * z[e];
    share = 1.0 / (1.0 + curvature * variance);
    for (int c = 0; c < n; c++)
        for (int e = 0; e < n; e++) covariance[c * n + e] -= curvature * share * gain[c] * gain[e];
    for (int e = 0; e < n; e++) weights[e] += w * others * share * gain[e];
}

/* The same, compiled for the number of members that a tracker has by default. */
DRIFT_CLONES static void drift_filter(double *__restrict weights, double *__restrict covariance, const double *__restrict z,
                                     double *__restrict gain, int n, double others, double w, double walk) {
    if (n == DRIFT_USUAL)
        drift_filter_of(weights, covariance, z, gain, DRIFT_USUAL, others, w, walk);
    else
        drift_filter_of(weights, covariance, z, gain, n, others, w, walk);
}

static void drift_learn_gate(DriftTracker *t, int g, int number, double w, double walk) {
    int n = t->members;
    const double *chances = t->chances + (size_t)g * t->classes, *own = t->scores + (size_t)number * n;
    double others = 0.0, *z = t->margins;
    for (int c = 0; c < drift_scored(t); c++)
        if (c != number) others += chances[c];
    if (!(others > DRIFT_SURE)) return; /* the gradient is 0, and means are not defined */
    for (int e = 0; e < n; e++) z[e] = t->n_rows > 1 ? own[e] : number ? t->scores[e] : -t->scores[e];
    for (int r = 0; t->n_rows > 1 && r < t->n_rows; r++)
        for (int e = 0; r != number && e < n; e++) z[e] -= chances[r] / others * t->scores[(size_t)r * n + e];
    drift_filter(t->gates + (size_t)g * n, t->covariances + (size_t)g * n * n, z, t->gains, n, others, w, walk);
}

/* Weights of the maps by the probability that they gave the class. */
static void drift_learn_maps(DriftTracker *t, int number, double w) {
    double mapped[DRIFT_N_MAPS], most = 0.0, sum = 0.0;
    drift_mix_maps(t, number, mapped);
    for (int m = 0; m < DRIFT_N_MAPS; m++)
        if (mapped[m] > most) most = mapped[m];
    for (int m = 0; m < DRIFT_N_MAPS; m++) sum += t->maps[m] *= w == 1.0 ? mapped[m] / most : pow(mapped[m] / most, w);
    for (int m = 0; m < DRIFT_N_MAPS; m++)
        t->maps[m] = (1.0 - DRIFT_MAP_SHARE) * (t->maps[m] / sum) + DRIFT_MAP_SHARE / DRIFT_N_MAPS;
}

/* Let the scores be those that were said when the example was predicted, or again those of now. */
static void drift_swap_scores(DriftTracker *t) {
    double *scores = t->scores;
    t->scores = t->said;
    t->said = scores;
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
}

/* Read what was said when there were `rows` of scores: a class that has come since had those of the one to come. */
static void drift_read_said(DriftTracker *t, const float *said, int rows) {
    int n = t->members;
    for (int r = 0; r < t->n_rows; r++)
        for (int e = 0; e < n; e++) {
            double *score = t->said + (size_t)r * n + e;
            if (rows == 1 && t->n_rows > 1)
                *score = r == 0 ? -0.5 * said[e] : r == 1 ? 0.5 * said[e] : 0.0;
            else
                *score = said[(size_t)(r < rows ? r : rows - 1) * n + e];
        }
}

/* Each member's loss, and whether it is wrong: its largest score of a class met is another one's. */
static void drift_count(DriftTracker *t, int number, double w, double loss, int told) {
    int n = t->members, scored = number < drift_scored(t);
    for (int e = 0; e < n; e++) t->choices[e] = t->n_rows == 1 && t->known > 1 && t->scores[e] > 0.0;
    for (int r = 1; t->n_rows > 1 && r < t->known; r++)
        for (int e = 0; e < n; e++)
            if (t->scores[r * n + e] > t->scores[t->choices[e] * n + e]) t->choices[e] = r;
    for (int e = 0; e < n; e++) t->lost[e] = loss;
    if (scored) drift_logs(t->lost, t->softmax + number * n, n, DRIFT_CLIP, w);
    for (int e = 0; told && e < n; e++) {
        t->losses[e] += t->lost[e];
        t->errors[e] += t->choices[e] == number ? 0.0 : w;
    }
    t->sums->total += told ? w : 0.0;
    t->sums->learnt += 1.0;
    t->sums->mean_loss = DRIFT_MEMORY * t->sums->mean_loss + loss;
    t->sums->mean_weight = DRIFT_MEMORY * t->sums->mean_weight + 1.0;
}

/* A new class joins: it takes over the row of the one to come, which is what it was for one more. There is room. */
static void drift_add_class(DriftTracker *t) {
    size_t n = (size_t)t->members, rows;
    t->known++;
    if (t->known < 3) return;
    if (t->known == 3) {
#define DRIFT_PART(family) drift_##family##_part(t);
        DRIFT_FAMILIES(DRIFT_PART)
#undef DRIFT_PART
        for (size_t e = 0; e < n; e++) {
            t->scores[n + e] = 0.5 * t->scores[e], t->scores[2 * n + e] = 0.0;
            t->scores[e] *= -0.5;
        }
        t->n_rows = 3;
    }
    rows = (size_t)t->n_rows++;
#define DRIFT_DOUBLE(array, size) memcpy(t->array + rows * (size), t->array + (rows - 1) * (size), (size) * sizeof *t->array);
    DRIFT_BY_ROWS(DRIFT_DOUBLE)
#undef DRIFT_DOUBLE
    drift_softmax(t->softmax, t->scores, t->n_rows, t->members);
}

/* Learn the example that was read and predicted, of a class whose row there is room for. Maps learn from what the members
   say now, or from what they said when it was predicted, or not at all where nobody knows what that was. Gates learn from
   the same; where both are known, from each by its share: what was said has the delay in it, what is said now has the rule
   of now. */
static void drift_learn(DriftTracker *t, int number, double w, int told) {
    double loss = w * drift_loss(t, number);
    int first = 0, late = told == DRIFT_SAID, scored = number < drift_scored(t);
    if (late) {
        drift_swap_scores(t);
        drift_open_gates(t);
    }
    if (told && scored) {
        if (number < t->known && t->known > 1) drift_learn_maps(t, number, w);
        for (int g = 0; g < DRIFT_GATES; g++) drift_learn_gate(t, g, number, late ? w * (1.0 - DRIFT_LATE_NOW[g]) : w, t->walks[g]);
    }
    drift_count(t, number, w, loss, told);
    if (late) {
        drift_swap_scores(t);
        drift_open_gates(t);
        for (int g = 0; scored && g < DRIFT_GATES; g++) drift_learn_gate(t, g, number, w * DRIFT_LATE_NOW[g], 0.0);
    }
    if (number == t->known) drift_add_class(t);
#define DRIFT_LEARN(family) drift_##family##_learn(t, first, number, w, loss), first += drift_count_of(t, DRIFT_COUNT_##family);
    DRIFT_FAMILIES(DRIFT_LEARN)
#undef DRIFT_LEARN
}

#endif
