/* The vocabulary: a hash table from a feature's name to its column, with the semantics of dict.

   Not a dict, because an example looks up some eighty names at once: entries are prefetched together,
   a probe is one cache line, and no Python integer is dereferenced. Linear probing, at most half full,
   deletion by shifting back. Names are borrowed: the caller keeps a reference to each entered name. */

#ifndef DRIFT_VOCABULARY_H
#define DRIFT_VOCABULARY_H

#include <Python.h>

#include "../_base/plain_values.h"
#include "portable.h"

typedef struct {
    PyObject *name; /* NULL if the entry is free */
    uint32_t hash; /* from `drift_fold`; 32 bits, so that four entries fit a cache line */
    int32_t column;
} DriftEntry;

typedef struct {
    DriftEntry *entries;
    size_t mask; /* number of entries - 1; that number is a power of two */
    size_t size;
    size_t changes; /* to detect that a name's __eq__ changed the table */
} DriftVocabulary;

static inline uint32_t drift_fold(Py_hash_t hash) { return (uint32_t)hash ^ (uint32_t)((uint64_t)hash >> 32); }

static inline size_t drift_home(uint32_t hash, size_t mask) {
    size_t h = hash; /* ints hash to themselves and numpy's strides are powers of two */
    return (h ^ (h >> 15)) & mask;
}

static inline void drift_vocabulary_prefetch(const DriftVocabulary *v, Py_hash_t hash) {
    if (v->entries) DRIFT_PREFETCH(&v->entries[drift_home(drift_fold(hash), v->mask)]);
}

/* Whether two names of equal folded hash are equal; -1 with an exception set. Plain names run no caller's code. */
static inline int drift_same(PyObject *a, PyObject *b) {
    if (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b)) return PyUnicode_Compare(a, b) == 0;
    Py_INCREF(a);
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    Py_DECREF(a);
    return same;
}

enum { DRIFT_ASK = -3 };

/* Column of a name; -1 without one, -2 with an exception set, DRIFT_ASK if the name is `borrowed` and must be
   compared with a name that is not plain. Sets `entered_name`, unless NULL, to the equal name in the table. */
static inline int32_t drift_vocabulary_find(const DriftVocabulary *v, PyObject *name, Py_hash_t hash,
                                            PyObject **entered_name, int borrowed) {
restart:
    if (!v->entries) return -1;
    uint32_t folded = drift_fold(hash);
    for (size_t i = drift_home(folded, v->mask);; i = (i + 1) & v->mask) {
        const DriftEntry *e = &v->entries[i];
        if (e->name == name) {
            if (entered_name) *entered_name = name;
            return e->column;
        }
        if (!e->name) return -1;
        if (e->hash == folded) {
            if (borrowed && !drift_is_plain_name(e->name)) return DRIFT_ASK;
            size_t changes = v->changes;
            int32_t column = e->column;
            PyObject *entered = e->name;
            int same = drift_same(entered, name);
            if (same < 0) return -2;
            if (changes != v->changes) goto restart;
            if (same) {
                if (entered_name) *entered_name = entered;
                return column;
            }
        }
    }
}

/* Move the names to a table of `room` entries, a power of two; -1 if out of memory. */
static int drift_vocabulary_resize(DriftVocabulary *v, size_t room) {
    DriftEntry *entries = (DriftEntry *)calloc(room, sizeof *entries);
    if (!entries) return -1;
    for (size_t i = 0; v->entries && i <= v->mask; i++)
        if (v->entries[i].name) {
            size_t to = drift_home(v->entries[i].hash, room - 1);
            while (entries[to].name) to = (to + 1) & (room - 1);
            entries[to] = v->entries[i];
        }
    free(v->entries);
    v->entries = entries;
    v->mask = room - 1;
    return 0;
}

/* Enter a new name; -1 if out of memory. */
static int drift_vocabulary_enter(DriftVocabulary *v, PyObject *name, Py_hash_t hash, int32_t column) {
    if ((!v->entries || 2 * (v->size + 1) > v->mask + 1) &&
        drift_vocabulary_resize(v, v->entries ? 2 * (v->mask + 1) : 16))
        return -1;
    uint32_t folded = drift_fold(hash);
    size_t i = drift_home(folded, v->mask);
    while (v->entries[i].name) i = (i + 1) & v->mask;
    v->entries[i] = (DriftEntry){name, folded, column};
    v->size++;
    v->changes++;
    return 0;
}

/* Delete a name, by identity. */
static void drift_vocabulary_leave(DriftVocabulary *v, PyObject *name, uint32_t folded) {
    size_t i = drift_home(folded, v->mask);
    while (v->entries[i].name != name) i = (i + 1) & v->mask;
    for (size_t next = (i + 1) & v->mask; v->entries[next].name; next = (next + 1) & v->mask) {
        size_t home = drift_home(v->entries[next].hash, v->mask);
        /* An entry may move back to the gap if its home is not after the gap. */
        if (((next - home) & v->mask) >= ((next - i) & v->mask)) {
            v->entries[i] = v->entries[next];
            i = next;
        }
    }
    v->entries[i].name = NULL;
    v->size--;
    v->changes++;
    /* Shrink after many names are gone. */
    if (v->mask >= 1024 && 16 * v->size < v->mask) (void)drift_vocabulary_resize(v, (v->mask + 1) / 4);
}

/* The same for a name whose hash raises; nothing if it is not in the table. */
static void drift_vocabulary_drop(DriftVocabulary *v, PyObject *name) {
    for (size_t i = 0; v->entries && i <= v->mask; i++)
        if (v->entries[i].name == name) {
            drift_vocabulary_leave(v, name, v->entries[i].hash);
            return;
        }
}

#endif
