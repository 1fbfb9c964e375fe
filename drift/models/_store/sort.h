/* Sorting of keys of two halves: a column above, a position below. Points are sorted by column with it. */

#ifndef DRIFT_SORT_H
#define DRIFT_SORT_H

#include "portable.h"

/* Sort few distinct keys by rank, without a branch on their order. */
DRIFT_CLONES static void drift_rank(uint64_t *__restrict keys, uint64_t *__restrict spare, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t key = keys[i], rank = 0;
        for (int j = 0; j < n; j++) rank += keys[j] < key;
        spare[rank] = key;
    }
    memcpy(keys, spare, (size_t)n * sizeof *keys);
}

/* Sort keys whose upper halves are at most `largest` and whose lower halves ascend: few by rank, many
   by radix sort between two arrays. */
static void drift_sort(uint64_t *keys, uint64_t *spare, int n, uint32_t largest) {
    int bits = 2, digit;
    if (n <= 32) {
        int sorted = 1;
        for (int i = 1; i < n; i++) sorted &= keys[i - 1] < keys[i];
        if (!sorted) drift_rank(keys, spare, n);
        return;
    }
    while (bits < 32 && largest >> bits) bits += 2;
    if (bits > 16) bits = (bits + 3) & ~3;
    digit = bits > 16 ? bits / 4 : bits / 2; /* two or four digits of at most 8 bits */
    for (int shift = 32; shift < 32 + bits; shift += digit) {
        int start[257], base = 1 << digit;
        uint64_t *sorted = spare;
        memset(start, 0, (size_t)(base + 1) * sizeof *start);
        for (int i = 0; i < n; i++) start[((keys[i] >> shift) & (base - 1)) + 1]++;
        for (int b = 0; b < base; b++) start[b + 1] += start[b];
        for (int i = 0; i < n; i++) sorted[start[(keys[i] >> shift) & (base - 1)]++] = keys[i];
        spare = keys;
        keys = sorted;
    }
}

#endif
