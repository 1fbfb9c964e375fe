/* Labels that come late: the members, and as one of them the whole, by weights that follow what they
   said without the labels in between. */

#ifndef DRIFT_LATE_H
#define DRIFT_LATE_H

#include "mixture.h"

#define DRIFT_LATE_VOTE 0.02 /* what a mistake takes from a logarithmic weight in the vote */
#define DRIFT_LATE_RATE 0.05 /* of the weights by log loss */
#define DRIFT_LATE_SHARE 1e-4 /* of the weights that goes round */

/* The probabilities that are shown of the classes met, into `next`. */
static void drift_chances(DriftMixture *m) {
    int n = m->members;
    double total = 0.0;
    DriftPowers powers = drift_sum_powers(m);
    for (int c = 0; c < m->known; c++) m->next[c] = drift_chance(m, &powers, c);
    if (!m->late) return;
    for (int c = 0; c < m->known; c++) {
        const double *weights = m->late + n + 1, *p = m->p + c * n;
        m->next[c] *= weights[n];
        for (int e = 0; e < n; e++) m->next[c] += weights[e] * p[e];
        total += m->next[c];
    }
    for (int c = 0; c < m->known; c++) m->next[c] /= total;
}

/* Decide anew, once the members and the whole said what they think. */
static void drift_decide_late(DriftMixture *m) {
    if (!m->late || !m->known) return;
    if (m->vote) {
        memset(m->next, 0, (size_t)m->known * sizeof *m->next);
        for (int e = 0; e < m->members; e++) m->next[m->choice[e]] += m->late[e];
        m->next[m->own] += m->late[m->members];
    } else {
        drift_chances(m);
    }
    m->prediction = drift_first(m->next, m->known, 1, DRIFT_TIE);
}

/* Probabilities to a power, beside the largest of them as all could underflow. */
DRIFT_CLONES static void drift_powers(double *p, int n, double power) {
    double most = 0.0;
    for (int e = 0; e < n; e++)
        if (p[e] > most) most = p[e];
    for (int e = 0; e < n; e++) {
        double x = power * drift_log(p[e] / most);
        p[e] = drift_power_of_e(x > -700.0 ? x : -700.0);
    }
}

/* Weigh by what they said of an example when they were those `behind`. */
static void drift_weigh_late(DriftMixture *m, DriftMixture *behind, int number, double w) {
    int n = m->members;
    double slip = drift_power_of_e(-DRIFT_LATE_VOTE * (w < 1000.0 ? w : 1000.0));
    DriftPowers powers = drift_sum_powers(behind);
    if (number >= behind->known) return;
    for (int e = 0; e < n; e++) m->late[e] *= behind->choice[e] == number ? 1.0 : slip;
    m->late[n] *= behind->own == number ? 1.0 : slip;
    drift_spread_share(m->late, n + 1, DRIFT_LATE_SHARE);
    memcpy(behind->next, behind->p + number * n, (size_t)n * sizeof *behind->next);
    behind->next[n] = drift_chance(behind, &powers, number);
    drift_powers(behind->next, n + 1, DRIFT_LATE_RATE * w);
    drift_reweigh(m->late + n + 1, behind->next, n + 1, 1.0, DRIFT_LATE_SHARE);
}

#endif
