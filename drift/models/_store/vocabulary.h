/* The vocabulary: from a feature's name to its column, as Python's dict would have it.

   A table of our own, because an example asks for some eighty names at once: their places are
   prefetched together, a probe is one cache line, and no Python integer is followed. Linear probing,
   at most half full, deletion by shifting back. Names are borrowed: whoever enters one keeps it. */

#ifndef DRIFT_VOCABULARY_H
#define DRIFT_VOCABULARY_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    PyObject *name; /* NULL where the place is free */
    uint32_t hash; /* as `drift_fold` has it: four entries to a cache line */
    int32_t column;
} DriftEntry;

typedef struct {
    DriftEntry *entries;
    size_t mask; /* number of places less one; a power of two less one */
    size_t size;
    size_t changes; /* to notice that a name's own __eq__ changed the table */
} DriftVocabulary;

static inline uint32_t drift_fold(Py_hash_t hash) { return (uint32_t)hash ^ (uint32_t)((uint64_t)hash >> 32); }

static inline size_t drift_home(uint32_t hash, size_t mask) {
    size_t h = hash; /* ints hash to themselves and numpy's strides are powers of two */
    return (h ^ (h >> 15)) & mask;
}

static inline void drift_vocabulary_prefetch(const DriftVocabulary *v, Py_hash_t hash) {
    if (v->entries) DRIFT_PREFETCH(&v->entries[drift_home(drift_fold(hash), v->mask)]);
}

/* Borrowed names and values, and the caller's code.

   An example's names and values are read without references of our own: by PyDict_Next, for speed. The caller's
   code could drop them from the dict, and it can run in the hash, the comparison or the conversion of any object
   but Python's own. So while anything is borrowed, only these functions look at it:

   - `drift_is_plain` admits exact str and int as names, and as values numbers whose conversion is Python's own;
   - `drift_hash` and `drift_number` are then arithmetic, which at most raises;
   - `drift_vocabulary_find` compares a `borrowed` name with plain entered names alone, and gives up with DRIFT_ASK
     before it would ask another one.

   Nor may an object be made that Python's garbage collector tracks, whose finalisers are the caller's code, too.
   Whatever is not plain is read anew from a list of items, which holds references (`read_any`). */

static inline int drift_is_plain_name(PyObject *name) { return PyUnicode_CheckExact(name) || PyLong_CheckExact(name); }

/* Whether two names that fold to the same are equal; -1 with an exception set. Of two plain ones no code is run. */
static inline int drift_same(PyObject *a, PyObject *b) {
    if (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b)) return PyUnicode_Compare(a, b) == 0;
    Py_INCREF(a);
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    Py_DECREF(a);
    return same;
}

enum { DRIFT_ASK = -3 };

/* Column of a name, and in `entered_name`, if that is no NULL, the name as it was entered; -1 if it has none,
   -2 with an exception set. Of a name that is `borrowed` DRIFT_ASK where an entered one would have to be asked. */
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

static int drift_vocabulary_resize(DriftVocabulary *v, size_t places) {
    DriftEntry *entries = (DriftEntry *)calloc(places, sizeof *entries);
    if (!entries) return -1;
    for (size_t i = 0; v->entries && i <= v->mask; i++)
        if (v->entries[i].name) {
            size_t place = drift_home(v->entries[i].hash, places - 1);
            while (entries[place].name) place = (place + 1) & (places - 1);
            entries[place] = v->entries[i];
        }
    free(v->entries);
    v->entries = entries;
    v->mask = places - 1;
    return 0;
}

/* Enter a name that is not there. Returns -1 without memory. */
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

/* Take out the name of a column, found by identity. */
static void drift_vocabulary_leave(DriftVocabulary *v, PyObject *name, uint32_t folded) {
    size_t i = drift_home(folded, v->mask);
    while (v->entries[i].name != name) i = (i + 1) & v->mask;
    for (size_t next = (i + 1) & v->mask; v->entries[next].name; next = (next + 1) & v->mask) {
        size_t home = drift_home(v->entries[next].hash, v->mask);
        /* An entry may move back to the gap if its home is not behind the gap. */
        if (((next - home) & v->mask) >= ((next - i) & v->mask)) {
            v->entries[i] = v->entries[next];
            i = next;
        }
    }
    v->entries[i].name = NULL;
    v->size--;
    v->changes++;
    /* Give memory back after a time of many names. */
    if (v->mask >= 1024 && 16 * v->size < v->mask) (void)drift_vocabulary_resize(v, (v->mask + 1) / 4);
}

/* The same for a name whose hash is not to be had; nothing if it is not there. */
static void drift_vocabulary_drop(DriftVocabulary *v, PyObject *name) {
    for (size_t i = 0; v->entries && i <= v->mask; i++)
        if (v->entries[i].name == name) {
            drift_vocabulary_leave(v, name, v->entries[i].hash);
            return;
        }
}

/* Whether reading this feature runs none of the caller's code. A float's subclass is read as what it holds: nobody
   calls its __float__. */
static inline int drift_is_plain(PyObject *name, PyObject *value) {
    return (PyFloat_Check(value) || PyLong_CheckExact(value) || PyBool_Check(value)) && drift_is_plain_name(name);
}

/* Whether a value is a float of this number; another kind of number need not be recognised. */
static inline int drift_is_number(PyObject *value, double number) {
#ifndef Py_LIMITED_API
    if (PyFloat_Check(value)) return PyFloat_AS_DOUBLE(value) == number;
#else
    if (PyFloat_Check(value)) return PyFloat_AsDouble(value) == number;
#endif
    if (!PyLong_CheckExact(value)) return 0;
    int overflow;
    long whole = PyLong_AsLongAndOverflow(value, &overflow);
    return !overflow && whole >= -(1L << 30) && whole <= 1L << 30 && (double)whole == number;
}

/* A name's hash; -1 with an exception set. */
static inline Py_hash_t drift_hash(PyObject *name) {
#ifndef Py_LIMITED_API
    if (PyUnicode_CheckExact(name)) {
        Py_hash_t hash = ((PyASCIIObject *)name)->hash;
        if (hash != -1) return hash;
    }
#endif
    return PyObject_Hash(name);
}

/* A value as a double; -1.0 with an exception set, perhaps. */
static inline double drift_number(PyObject *value) {
#ifndef Py_LIMITED_API
    if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
#endif
    return PyFloat_AsDouble(value);
}

#endif
