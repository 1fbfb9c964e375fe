# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The column store: support vectors by feature, so that a score reads only the example's features.

One column per feature has the supports' values of it, sparse while few supports have the feature,
dense above an eighth of the slots. A name is forgotten when its column is empty.
`columns.pyi` says what each public method does, `plain.py` does the same in plain Python.

Stored values are divided by the example's `divisor`. That is its norm if the kernel normalises
examples, which then have unit norm. Else it is a power of two that makes the norm at least 1/2 and
less than 1: this rounds nothing, and float32 cannot overflow. `dot_factors` reverse the division.
Norms, coefficients and kernel values are double.

The store is one class, cut into layers that are included here as one translation unit. Each layer
derives from the one before and calls no method of a later layer. An attribute is declared in the
lowest layer that uses it, though a later one may own it, as `Changes` owns the log of columns:

=======================  ===========  =============================================================
`columns_slots.pxi`      `Slots`      columns, their names, and the slots of supports
`columns_point.pxi`      `Point`      the example read last, by columns
`columns_scores.pxi`     `Scores`     the point's kernel values and scores
`columns_changes.pxi`    `Changes`    adding, evicting, merging, coefficients; the log that undoes it
`columns_steps.pxi`      `Steps`      the step of a model that learns the point
`columns_batches.pxi`    `Batches`    the rows of a batch, with the sums of a window of them
this file                             the state, as plain values and arrays
=======================  ===========  =============================================================

Only `Changes`, and `restore` below, change supports and coefficients, and with them attributes of
the earlier layers. The other layers change of `Slots` only the table of the batch's columns, and
the arrays for the point's inner products and kernel values.

The other files are not layers:

- `columns_native.pxi` declares what is in C: `columns.h` (columns, inner products), `window.h` (these
  for many rows), `scores.h` (kernels, sums), `vocabulary.h` (names), `sort.h` and `portable.h`;
- `columns_memory.pxi` has aligned memory and stacks;
- `columns_calibration.pxi` and `columns_window.pxi` have classes that the layers use;
- `columns_votes.pxi` has a function for one algorithm;
- the `.pxi` files of `drift/models/_base` know no store.

The guard (`_base/guard.pxi`) calls `start` before an update, then `finish`, or `undo` if it fails.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AsString
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBUF_STRIDED, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.buffer cimport PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_Next
from cpython.unicode cimport PyUnicode_CheckExact
from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport INFINITY, exp, fabs, frexp, ldexp, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset, strchr, strcmp

from array import array
from operator import itemgetter

import numpy as np

from drift.errors import FeatureError, FeatureTypeError, ParameterError
from drift.kernels import RBF, Linear, Polynomial
from drift.models._base.examples import LARGEST, as_dict, in_order, index_of, refusal_of
from drift.models._base.guard import IN_USE, Kind, check_saved, copied, kind_of, undoes_itself
from drift.models._base.rounding import RELATIVE_TOLERANCE
from drift.models._base.rows import INDEXED_WIDTH, MAX_DISTINCT, Row, Rows
from drift.models._store import calibration, constants
from drift.models._store.check import check_store
from drift.models._store.constants import DENSE, LANES, SPARSE
from drift.models._store.refusals import NO_POINT, finite_self_kernel, no_finite_value

cdef double max_squared_norm = LARGEST, zero_exponent = constants.ZERO_EXPONENT
cdef double same_example_tolerance = constants.SAME_EXAMPLE_TOLERANCE
cdef double min_coefficient_factor = constants.MIN_COEFFICIENT_FACTOR
cdef double max_coefficient_factor = constants.MAX_COEFFICIENT_FACTOR
cdef Py_ssize_t indexed_width = INDEXED_WIDTH
cdef object SERIAL = itemgetter(1)

include "../../__init__.py"  # the version that this is compiled from
include "columns_native.pxi"
include "../_base/memory.pxi"
include "columns_memory.pxi"
include "../_base/rows.pxi"
include "../_base/guard.pxi"
include "columns_calibration.pxi"
include "../_base/rows_checks.pxi"
include "columns_window.pxi"
include "columns_slots.pxi"
include "columns_point.pxi"
include "columns_scores.pxi"
include "columns_changes.pxi"
include "columns_steps.pxi"
include "columns_batches.pxi"
include "columns_votes.pxi"


cdef class ColumnStore(Batches):
    """The column store: supports by feature, and the score of an example."""

    def __sizeof__(self):
        cdef Py_ssize_t size = self.slot_bytes() + self.point_bytes() + self.log_bytes()
        if self.window is not None:
            size += self.window.__sizeof__()
        return object.__sizeof__(self) + size

    def state(self):
        """Return the state as plain values and arrays, with the order of sums."""
        cdef int slot, k
        cdef Py_ssize_t size = 0
        cdef Buffer id_buffer, value_buffer
        cdef int32_t *id
        cdef double *value
        self.guard.check()
        sizes = array("i", [self.n_features[slot] for slot in range(self.n_slots)])
        serials = array("q", bytes(self.n_slots * sizeof(int64_t)))
        for k in range(self._n_supports):
            serials[self._slots_by_age[k]] = self._serials_by_age[k]
        for slot in range(self.n_slots):
            size += self.n_features[slot]
        ids, values = array("i", bytes(size * sizeof(int32_t))), array("d", bytes(size * sizeof(double)))
        id_buffer, value_buffer = buffer_of(ids, b"i", PyBUF_WRITABLE), buffer_of(values, b"d", PyBUF_WRITABLE)
        id, value = <int32_t *>id_buffer.view.buf, doubles(value_buffer, size)
        for slot in range(self.n_slots):
            for k in range(self.n_features[slot]):
                id[0] = self.features[slot][k]
                value[0] = self.get(&self.columns[id[0]], slot)
                id += 1
                value += 1
        return {
            "wide": self.wide,
            "most": self.largest_self_kernel,
            "calibration": self.calibration.state(),
            "factor": self.coefficient_factor,
            "capacity": self.capacity,
            "names": [self.names[j] for j in range(self.n_columns)],
            "free_columns": listed(&self.free_columns),
            "dense": [j for j in range(self.n_columns) if drift_is_dense(&self.columns[j])],
            "free_slots": listed(&self.free_slots),
            "n_added": self.n_added,
            "serials": serials,
            "sizes": sizes,
            "ids": ids,
            "values": values,
            "weight": array("d", [self.unscaled_coefficients[slot] for slot in range(self.n_slots)]),
            "scale": array("d", [self.divisor_of(slot) for slot in range(self.n_slots)]),
            "squared": array("d", [self.squared_norms[slot] for slot in range(self.n_slots)]),
        }

    @cython.binding(True)  # required for class methods under the limited API
    @classmethod
    def restore(cls, kernel, limit, state):
        """Build a store from the `state` of either."""
        check_store(state)
        cdef ColumnStore self = cls(kernel, state["wide"], limit)
        cdef int slot, j, k, size
        cdef Buffer id_buffer = buffer_of(state["ids"], b"i"), value_buffer = buffer_of(state["values"], b"d")
        cdef const int32_t *id = <int32_t *>id_buffer.view.buf
        cdef const double *value = <double *>value_buffer.view.buf
        self.largest_self_kernel = state["most"]
        self.calibration = Calibration(*state["calibration"])
        self.coefficient_factor = state["factor"]
        holes = set(state["free_columns"])
        self.reserve_slots(state["capacity"])
        for j, name in enumerate(state["names"]):
            self.append_column()
            if j not in holes:
                self.name_column(j, name)
        fill(&self.free_columns, state["free_columns"])
        fill(&self.free_slots, state["free_slots"])
        self.n_slots = len(state["sizes"])
        dense = set(state["dense"])
        for slot, size in enumerate(state["sizes"]):
            self.features[slot] = <int32_t *>grown(NULL, size * sizeof(int32_t))
            for k in range(size):
                self.put(id[k], slot, value[k])
            id += size
            value += size
            self.unscaled_coefficients[slot] = state["weight"][slot]
            self.squared_norms[slot] = state["squared"][slot]
            self.cosine_factors[slot] = self.cosine_factor_of(self.squared_norms[slot])
            self.dot_factors[slot] = state["scale"][slot] * self.cosine_factors[slot]
        for slot in state["free_slots"]:
            self.unscaled_coefficients[slot] = self.dot_factors[slot] = self.squared_norms[slot] = 0.0
            self.cosine_factors[slot] = self.cosine_factor_of(0.0)
        for j in range(self.n_columns):
            self.make_dense(j, j in dense)
        self.n_added = state["n_added"]
        for slot, serial in sorted(enumerate(state["serials"]), key=SERIAL):
            if serial:
                self._slots_by_age[self._n_supports], self._serials_by_age[self._n_supports] = slot, serial
                self._n_supports += 1
        return self


if (DENSE, SPARSE, LANES) != (DRIFT_DENSE, DRIFT_SPARSE, DRIFT_LANES):
    raise RuntimeError("constants.py has other constants than columns.h: compile again")
undoes_itself(ColumnStore)  # extension types allow no decorators
undoes_itself(Calibration)
