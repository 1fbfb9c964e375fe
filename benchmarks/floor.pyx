# cython: language_level=3
"""The least that any learner of dicts must do: walk the dict and look each name up, in C."""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLong
from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object mapping, object key) except? NULL


def walk(dict x, dict vocabulary):
    """Sum of the values times the numbers that the vocabulary has for their names."""
    cdef Py_ssize_t position = 0
    cdef PyObject *name
    cdef PyObject *value
    cdef PyObject *number
    cdef double total = 0.0
    while PyDict_Next(x, &position, &name, &value):
        number = PyDict_GetItemWithError(vocabulary, <object>name)
        if number != NULL:
            total += PyFloat_AsDouble(<object>value) * PyLong_AsLong(<object>number)
    return total
