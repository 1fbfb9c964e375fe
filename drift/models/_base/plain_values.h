/* Names and values that are read without the caller's code.

   PyDict_Next gives borrowed references to an example's names and values, for speed. The caller's code could
   delete them from the dict. It can run in the hash, comparison or conversion of any object that is not of a
   builtin type. So while references are borrowed, only these functions use them:

   - `drift_is_plain` accepts exact str and int as names, and builtin numbers as values;
   - `drift_hash` and `drift_number` then run no caller's code, but may raise;
   - `drift_vocabulary_find` compares a `borrowed` name only with plain entered names, and returns DRIFT_ASK
     before it would compare with another one.

   Nor may an object be created that the garbage collector tracks, since a collection may run the caller's
   finalisers. Examples that are not plain are read again from a list of items, which owns references (`read_any`). */

#ifndef DRIFT_PLAIN_VALUES_H
#define DRIFT_PLAIN_VALUES_H

#include <Python.h>

static inline int drift_is_plain_name(PyObject *name) { return PyUnicode_CheckExact(name) || PyLong_CheckExact(name); }

/* Whether reading this feature runs none of the caller's code. For an instance of a subclass of float, its value as
   a float is read; its __float__ is not called. */
static inline int drift_is_plain(PyObject *name, PyObject *value) {
    return (PyFloat_Check(value) || PyLong_CheckExact(value) || PyBool_Check(value)) && drift_is_plain_name(name);
}

/* Whether a value is known to equal a number: floats and small ints only. False negatives are allowed. */
static inline int drift_is_number(PyObject *value, double number) {
#ifndef Py_LIMITED_API
    if (PyFloat_Check(value)) return PyFloat_AS_DOUBLE(value) == number;
#else
    if (PyFloat_Check(value)) return PyFloat_AsDouble(value) == number;
#endif
    if (!PyLong_CheckExact(value)) return 0;
    int overflow;
    long integer = PyLong_AsLongAndOverflow(value, &overflow);
    return !overflow && integer >= -(1L << 30) && integer <= 1L << 30 && (double)integer == number;
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

/* A value as a double; -1.0 may mean that an exception is set. */
static inline double drift_number(PyObject *value) {
#ifndef Py_LIMITED_API
    if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
#endif
    return PyFloat_AsDouble(value);
}

#endif
