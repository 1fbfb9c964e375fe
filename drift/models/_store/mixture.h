/* The tracker's list of members: what they say of an example, and how their weights follow the loss.

   Arrays by member or by row (a score's) or class (a probability's) and member. Loops run over the
   members inside, each by itself, so that vectors take them. */

#ifndef DRIFT_MIXTURE_H
#define DRIFT_MIXTURE_H

#include "tracker_softmax.h"

#define DRIFT_CLIP 1e-3 /* least probability that a member gives a class */
#define DRIFT_TIE 1e-6 /* scores and probabilities within this are equal, */
#define DRIFT_VOTE_TIE 1e-9 /* and votes within that */
#define DRIFT_VOTE 0.2 /* what a mistake takes from a logarithmic weight in the vote */
#define DRIFT_INSERTION 0.25 /* share of the mean loss above which an example becomes a support */
#define DRIFT_MEMORY 0.999 /* of that mean */
#define DRIFT_SEEN 5.0 /* of a score that gates see, what is above this */
#define DRIFT_BEYOND 0.25 /* counts so much */
#define DRIFT_MAP_SHARE 3e-4 /* of the weights of the maps that goes round */
#define DRIFT_EVEN 2.5 /* log-odds that the last map keeps; larger ones grow, smaller ones shrink */

/* Of the gate of second order: what an example adds to the variances of its weights, and their most. */
#define DRIFT_WALK 1e-5
#define DRIFT_MOST 0.1

enum { DRIFT_FIRST_ORDER = 1, DRIFT_GATES = 2, DRIFT_LINEARS = 4, DRIFT_SPLINES = 2, DRIFT_USUAL = DRIFT_USUAL_MEMBERS - DRIFT_GATES };
enum { DRIFT_SLOPES = 3, DRIFT_FLOORS = 4, DRIFT_MAPS = DRIFT_SLOPES * DRIFT_FLOORS + 1 };
static const double drift_floors[DRIFT_FLOORS] = {0.0, 0.1, 0.2, 0.4};
static const double drift_gate_rates[DRIFT_FIRST_ORDER] = {0.1};

typedef struct {
    int members, scored; /* all, and those whose scores the gates see */
    int rows, known; /* scores of a member; classes met */
    int vote; /* decide by the vote */
    double share;
    /* What is learnt: by member, of the gates, and sums. */
    double *weights, *majority, *errors, *losses, *path, *switches, *gates, *covariance;
    double trust[2], maps[DRIFT_MAPS], total, log_loss, mistakes, mean_loss, mean_of;
    int64_t n_learnt;
    double *late; /* see late.h: weights in the vote, then those by log loss; NULL where labels come at once */
    /* Of the example read last. */
    double *score, *softmax, *p, *next, *mixed, *margin, *gain;
    int *choice;
    int ballot[2], own, prediction; /* `own` whether labels come late or not */
} DriftMixture;

static inline int drift_classes(const DriftMixture *m) { return m->rows > 1 ? m->rows : 2; }

/* The first place whose value is within `tie` of the largest one's. */
static int drift_first(const double *values, int n, int step, double tie) {
    int first = 0;
    double most = values[0];
    for (int i = 1; i < n; i++)
        if (values[i * step] > most) most = values[i * step];
    while (first < n - 1 && !(values[first * step] >= most - tie)) first++;
    return first;
}

/* A score as the gates see it: some experts' are huge, and still in order. */
static inline double drift_seen(double score) {
    double most = drift_clipped(score, DRIFT_SEEN);
    return most + DRIFT_BEYOND * (score - most);
}

/* Let all members say what they think, from the scores of those but the gates. */
static void drift_say(DriftMixture *m) {
    int n = m->members, classes = drift_classes(m), known = m->known ? m->known : 1;
    double least = 0.5 / classes < DRIFT_CLIP ? 0.5 / classes : DRIFT_CLIP;
    for (int r = 0; r < m->rows; r++)
        for (int j = 0; j < DRIFT_GATES; j++) {
            double sum = 0.0;
            for (int e = 0; e < m->scored; e++)
                sum += m->gates[j * m->scored + e] * drift_seen(m->score[r * n + e]);
            m->score[r * n + m->scored + j] = sum;
        }
    drift_softmax(m->softmax, m->score, m->rows, n);
    for (int i = 0; i < classes * n; i++) m->p[i] = least + (1.0 - classes * least) * m->softmax[i];
    for (int c = 0; c < classes; c++) {
        double sum = 0.0;
        for (int e = 0; e < n; e++) sum += m->weights[e] * m->p[c * n + e];
        m->mixed[c] = sum;
    }
    memset(m->next, 0, (size_t)known * sizeof *m->next);
    for (int e = 0; e < n; e++) {
        m->choice[e] = m->rows == 1 ? known > 1 && m->score[e] > DRIFT_TIE : drift_first(m->score + e, known, n, DRIFT_TIE);
        m->next[m->choice[e]] += m->majority[e];
    }
    m->ballot[0] = drift_first(m->mixed, known, 1, DRIFT_TIE);
    m->ballot[1] = drift_first(m->next, known, 1, DRIFT_VOTE_TIE);
    m->own = m->known ? m->ballot[m->vote && m->trust[1] > m->trust[0] + DRIFT_VOTE_TIE] : -1;
    m->prediction = m->own;
}

/* Whether a score stood for a class: not for a third one. */
static inline int drift_was_scored(const DriftMixture *m, int number) { return number < drift_classes(m); }

static double drift_loss(const DriftMixture *m, int number) {
    return -log(drift_was_scored(m, number) ? m->mixed[number] : DRIFT_CLIP);
}

/* Whether an example is worth a support. */
static int drift_inserts(const DriftMixture *m, double loss) {
    return loss > DRIFT_INSERTION * (DRIFT_MEMORY * m->mean_loss + loss) / (DRIFT_MEMORY * m->mean_of + 1.0);
}

static void drift_spread_share(double *weights, int n, double share) {
    double sum = 0.0;
    for (int e = 0; e < n; e++) sum += weights[e];
    for (int e = 0; e < n; e++) weights[e] = (1.0 - share) / sum * weights[e] + share / n;
}

/* Multiply weights by the probabilities that their members gave to what came, to the power of the example's
   weight; beside the best of them where all could underflow. */
static void drift_reweigh(double *weights, const double *own, int n, double w, double share) {
    double most = w > 32.0 ? 0.0 : 1.0;
    for (int e = 0; e < n; e++)
        if (weights[e] > 0.0 && own[e] > most) most = own[e];
    for (int e = 0; e < n; e++) weights[e] *= w == 1.0 ? own[e] : own[e] < most ? pow(own[e] / most, w) : 1.0;
    drift_spread_share(weights, n, share);
}

/* The weights behind an example of a class, into `next`. */
static void drift_next_weights(DriftMixture *m, int number, double w) {
    memcpy(m->next, m->weights, (size_t)m->members * sizeof *m->next);
    if (drift_was_scored(m, number)) drift_reweigh(m->next, m->p + number * m->members, m->members, w, m->share);
}

/* Slope of the last map, and sums over the classes met: of the mixture's probabilities, of their squares and
   fourth powers, and of the powers that the last map takes. */
typedef struct {
    double slope, sums[DRIFT_SLOPES + 1];
} DriftPowers;

static inline double drift_last_power(const DriftMixture *m, double slope, int number) {
    return pow(m->mixed[number], slope);
}

static DriftPowers drift_sum_powers(const DriftMixture *m) {
    double top = m->mixed[m->ballot[0]], odds = log(top / (1.0 - top));
    DriftPowers powers = {(odds > 1.0 ? odds : 1.0) / DRIFT_EVEN, {0.0}};
    for (int c = 0; c < m->known; c++) {
        double power = m->mixed[c];
        for (int s = 0; s < DRIFT_SLOPES; s++, power *= power) powers.sums[s] += power;
        powers.sums[DRIFT_SLOPES] += drift_last_power(m, powers.slope, c);
    }
    return powers;
}

/* The probability of a class that was met under each map. */
static void drift_map(const DriftMixture *m, const DriftPowers *powers, int number, double *mapped) {
    double power = m->mixed[number];
    for (int s = 0; s < DRIFT_SLOPES; s++, power *= power)
        for (int f = 0; f < DRIFT_FLOORS; f++)
            mapped[s * DRIFT_FLOORS + f] = (1.0 - drift_floors[f]) * (power / powers->sums[s]) + drift_floors[f] / m->known;
    mapped[DRIFT_MAPS - 1] = drift_last_power(m, powers->slope, number) / powers->sums[DRIFT_SLOPES];
}

/* That probability as it is shown. */
static double drift_chance(const DriftMixture *m, const DriftPowers *powers, int number) {
    double mapped[DRIFT_MAPS], sum = 0.0;
    drift_map(m, powers, number, mapped);
    for (int i = 0; i < DRIFT_MAPS; i++) sum += m->maps[i] * mapped[i];
    return sum;
}

static void drift_learn_maps(DriftMixture *m, int number, double w) {
    double mapped[DRIFT_MAPS];
    DriftPowers powers = drift_sum_powers(m);
    drift_map(m, &powers, number, mapped);
    drift_reweigh(m->maps, mapped, DRIFT_MAPS, w, DRIFT_MAP_SHARE);
}

/* Minus the gradient of a member's log loss in its score of a row. */
static inline double drift_gradient(const DriftMixture *m, int member, int row, int number) {
    int own = m->rows > 1 ? row : 1;
    return (number == own) - m->softmax[own * m->members + member];
}

/* Let the cheapest sequence of members switch to any of them, at the price of the share. */
static void drift_follow(DriftMixture *m) {
    int n = m->members, least = 0;
    double part = m->share / n, stay = log(1.0 - m->share + part), go, switches;
    for (int e = 1; e < n; e++)
        if (m->path[e] < m->path[least]) least = e;
    go = m->path[least] - log(part); /* infinite without a share */
    switches = m->switches[least] + 1.0;
    for (int e = 0; e < n; e++) {
        m->path[e] -= stay;
        if (go < m->path[e]) {
            m->path[e] = go;
            m->switches[e] = switches;
        }
    }
}

/* Where the last gate is wrong: its own largest score of another class that was met. */
static int drift_rival(const DriftMixture *m, int number) {
    const double *score = m->score + m->members - 1;
    int rival = -1;
    for (int r = 0; r < m->rows - 1; r++)
        if (r != number && (rival < 0 || score[r * m->members] > score[rival * m->members])) rival = r;
    return rival;
}

/* One step of the gate of second order: a Kalman filter of weights that walk, on the logistic loss of the
   scores above those of the rival. */
static DRIFT_INLINE void drift_filter_of(double *__restrict weights, double *__restrict covariance,
                                         const double *__restrict z, double *__restrict gain, int n, double w) {
    double margin = 0.0, spread = 0.0, u, known, step;
    for (int e = 0; e < n; e++) margin += weights[e] * z[e];
    u = 1.0 / (1.0 + drift_power_of_e(drift_clipped(margin, DRIFT_LARGEST)));
    known = w * u * (1.0 - u);
    for (int e = 0; e < n; e++) {
        covariance[e * n + e] += DRIFT_WALK;
        gain[e] = 0.0;
    }
    for (int c = 0; c < n; c++) /* it is symmetric */
        for (int e = 0; e < n; e++) gain[e] += covariance[c * n + e] * z[c];
    for (int e = 0; e < n; e++) spread += gain[e] * z[e];
    step = 1.0 / (1.0 + known * spread);
    for (int c = 0; c < n; c++)
        for (int e = 0; e < n; e++) covariance[c * n + e] -= known * step * gain[c] * gain[e];
    for (int e = 0; e < n; e++) weights[e] += w * u * step * gain[e];
    for (int e = 0; e < n; e++) {
        double share = covariance[e * n + e];
        if (share <= DRIFT_MOST) continue;
        share = sqrt(DRIFT_MOST / share);
        for (int c = 0; c < n; c++) covariance[e * n + c] *= share;
        for (int c = 0; c < n; c++) covariance[c * n + e] *= share;
    }
}

/* The same, compiled for the number of scores that a tracker has by default. */
DRIFT_CLONES static void drift_filter(double *__restrict weights, double *__restrict covariance,
                                     const double *__restrict z, double *__restrict gain, int n, double w) {
    if (n == DRIFT_USUAL)
        drift_filter_of(weights, covariance, z, gain, DRIFT_USUAL, w);
    else
        drift_filter_of(weights, covariance, z, gain, n, w);
}

/* One step of each gate in the weights that it gives the others' scores. */
static void drift_learn_gates(DriftMixture *m, int number, double w) {
    int n = m->members, scored = m->scored, rival = drift_rival(m, number);
    for (int e = 0; e < scored; e++) {
        if (m->rows == 1)
            m->margin[e] = (number ? 1.0 : -1.0) * drift_seen(m->score[e]);
        else
            m->margin[e] = drift_seen(m->score[number * n + e]) - drift_seen(m->score[rival * n + e]);
    }
    for (int j = 0; j < DRIFT_FIRST_ORDER; j++)
        for (int r = 0; r < m->rows; r++) {
            double step = w * drift_gate_rates[j] / scored * drift_gradient(m, scored + j, r, number);
            for (int e = 0; e < scored; e++)
                m->gates[j * scored + e] += step * drift_seen(m->score[r * n + e]);
        }
    drift_filter(m->gates + DRIFT_FIRST_ORDER * scored, m->covariance, m->margin, m->gain, scored, w);
}

DRIFT_CLONES static void drift_losses(double *__restrict loss, const double *__restrict p, int n, double w) {
    for (int e = 0; e < n; e++) loss[e] = -w * drift_log(p[e]);
}

/* Weigh the members by what they said of an example, after `drift_next_weights`; loss includes `w`. */
static void drift_weigh(DriftMixture *m, int number, double w, double loss) {
    int n = m->members, scored = drift_was_scored(m, number);
    double slip = drift_power_of_e(-DRIFT_VOTE * (w < 1000.0 ? w : 1000.0));
    if (scored) {
        if (m->n_learnt) drift_follow(m);
        drift_learn_gates(m, number, w);
        memcpy(m->weights, m->next, (size_t)n * sizeof *m->weights);
        if (number < m->known && m->known > 1) drift_learn_maps(m, number, w);
    }
    for (int e = 0; e < n; e++) m->next[e] = loss;
    if (scored) drift_losses(m->next, m->p + number * n, n, w);
    for (int e = 0; e < n; e++) {
        double lost = m->next[e];
        m->path[e] += lost;
        m->losses[e] += lost;
        m->errors[e] += m->choice[e] == number ? 0.0 : w;
        m->majority[e] *= m->choice[e] == number ? 1.0 : slip;
    }
    for (int b = 0; b < 2; b++) m->trust[b] *= m->ballot[b] == number ? 1.0 : slip;
    drift_spread_share(m->majority, n, m->share);
    drift_spread_share(m->trust, 2, m->share);
    m->total += w;
    m->log_loss += loss;
    m->mistakes += m->own == number ? 0.0 : w;
    m->mean_loss = DRIFT_MEMORY * m->mean_loss + loss;
    m->mean_of = DRIFT_MEMORY * m->mean_of + 1.0;
    m->n_learnt++;
}

#endif
