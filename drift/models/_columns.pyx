# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The column store: support vectors by feature, so that a score touches only what an example has.

One column per feature holds the supports' values for it, sparse while few supports have the feature
and dense above an eighth of them. The vocabulary is owned by the supports: a name whose column
empties is forgotten. `drift.models._columns_py` is the same contract in plain Python.

Rows lie in the columns at unit norm where the kernel looks at their direction alone, else scaled by
a power of two to a norm in [1/2, 1), which is exact and keeps float32 far from its limits; `scale`
takes the slot back. Everything else (norms, coefficients, kernel values) is double.

The store is one class in five steps, each upon the one before: what is kept of the supports, the
point, its scores, batches of points, screens of batches. They are one translation unit.
"""

cimport cython
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_Next
from cpython.unicode cimport PyUnicode_CheckExact
from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport exp, fabs, frexp, ldexp, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from array import array

from drift.errors import FeatureError, FeatureTypeError, ParameterError
from drift.kernels import RBF, Linear, Polynomial
from drift.models._names import IN_USE, INDEXED_WIDTH, Row, as_dict, culprit, in_order, index_of

include "_columns_native.pxi"
include "_columns_supports.pxi"
include "_columns_point.pxi"
include "_columns_scores.pxi"
include "_columns_batches.pxi"
include "_columns_screens.pxi"


cdef class ColumnStore(Screens):
    """Supports by feature, and the kernel row of one example against all of them.

    Parameters
    ----------
    kernel
        A kernel of `drift.kernels`, computed here, or any other, called with numpy arrays.
    wide
        Keep the columns in float64 instead of float32.
    limit
        Number of supports above which it is not worth reserving room; None for no limit.
    """

    def __sizeof__(self):
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), size = 0
        cdef int j
        for j in range(self.n_columns):
            if drift_is_dense(&self.columns[j]):
                size += self.capacity * real
            elif self.columns[j].room > 1:
                size += self.columns[j].room * 2 * real  # a cell is a slot and a value, aligned
        for j in range(self.capacity):
            size += self.row_size[j] * sizeof(int32_t)
        size += self.column_room * sizeof(DriftColumn) + self.width * sizeof(int32_t)
        size += (self.vocabulary.mask + 1) * 16  # a place is a pointer, a hash and a column
        size += self.capacity * (sizeof(void *) + sizeof(int32_t) + 5 * sizeof(double) + real)
        if self.window != NULL:
            size += self.window_size(self.window_stride)
        size += self.point_room * (5 * sizeof(int32_t) + 10 * sizeof(double))
        return object.__sizeof__(self) + size

    def add(self, x, double coefficient):
        """Store `x`, the example read last, as a support; return its slot."""
        cdef int slot, k
        cdef list kept = None
        self.check_reader()
        if not self.current or (self.n_unknown and not self.by_index):
            self.read(x)  # the names that were noted of it may be gone
            if not (self.plain or self.by_index):
                self.begin_point()
                kept = self.note_any(x if type(x) is dict else as_dict(x))
        if self.free_slots:
            slot = self.free_slots.pop()
        else:
            self.reserve_slots(self.used + 1)
            slot = self.used
            self.used += 1
        self.scored = self.filled = self.current = False
        self.rows[slot] = <int32_t *>grown(NULL, (self.count + self.n_unknown) * sizeof(int32_t))
        self.sort_point()
        for k in range(self.count):
            self.put(self.sorted_ids[k], slot, self.sorted_values[k])
        if self.n_unknown:
            self.put_unknown(slot)
        self.weight[slot] = coefficient / self.factor
        self.scale[slot] = self.point_scale
        self.squared[slot] = self.point_squared
        self.share[slot] = self.point_share
        self.mark_stale(slot)
        return slot

    cdef int put_unknown(self, int slot) except -1:
        """Give the point's features that no support has their columns.

        Columns are summed in the order in which they are made, and so are made in the order of the
        names, whatever that of the example is.
        """
        cdef int k, n = self.n_unknown, largest = 0
        cdef double value
        cdef dict fresh = {}
        if self.by_index:
            for k in range(n):
                largest = max(largest, self.indices[self.unknown[k]])
                self.keys[k] = (<uint64_t>self.indices[self.unknown[k]] << 32) | <uint64_t>self.unknown[k]
            drift_sort(self.keys, self.spare_keys, n, largest)
            for k in range(n):
                value = self.numbers[<uint32_t>self.keys[k]]
                self.put(self.new_column(<int32_t>(self.keys[k] >> 32)), slot, value / self.divisor)
            return 0
        for k in range(n):
            fresh[<object>self.read_names[self.unknown[k]]] = self.numbers[self.unknown[k]]
        for name in in_order(list(fresh)):
            self.put(self.new_column(name), slot, <double>fresh[name] / self.divisor)
        return 0

    def remove(self, int slot):
        """Forget the support in a slot, and each name that no other support has."""
        cdef int k, j, size = self.row_size[slot], n_emptied = 0, largest = 0
        cdef bint dense
        cdef int32_t *row = self.rows[slot]
        self.check_holder()
        self.reserve_point(size)
        self.scored = self.filled = self.current = False
        for k in range(size):
            DRIFT_PREFETCH(&self.columns[row[k]])
        for k in range(size):
            drift_prefetch_head(&self.columns[row[k]])
        for k in range(size):
            j = row[k]
            drift_prefetch_rest(&self.columns[row[min(k + 4, size - 1)]])
            dense = drift_is_dense(&self.columns[j])
            if self.wide:
                drift_drop_double(&self.columns[j], slot, self.capacity)
            else:
                drift_drop_float(&self.columns[j], slot, self.capacity)
            if dense != drift_is_dense(&self.columns[j]):
                self.window_stop = 0
            if self.columns[j].size == 0:
                largest = max(largest, j)
                self.keys[n_emptied] = <uint64_t>j << 32
                n_emptied += 1
        drift_sort(self.keys, self.spare_keys, n_emptied, largest)
        for k in range(n_emptied):
            DRIFT_PREFETCH(<PyObject *>self.names[<int>(self.keys[k] >> 32)])
        for k in range(n_emptied - 1, -1, -1):  # the lowest is taken first
            self.free_column(<int>(self.keys[k] >> 32))
        free(row)
        self.rows[slot] = NULL
        self.row_size[slot] = 0
        self.weight[slot] = self.scale[slot] = self.squared[slot] = 0.0
        self.share[slot] = self.share_of(0.0)
        self.free_slots.append(slot)

    def state(self):
        """Return all that a store is, as plain values and arrays, down to the order of its sums."""
        cdef int slot, k
        cdef Py_ssize_t size = 0
        cdef Py_buffer id_view, value_view
        self.check_holder()
        cdef int32_t *id
        cdef double *value
        sizes = array("i", [self.row_size[slot] for slot in range(self.used)])
        for slot in range(self.used):
            size += self.row_size[slot]
        ids, values = array("i", bytes(size * sizeof(int32_t))), array("d", bytes(size * sizeof(double)))
        PyObject_GetBuffer(ids, &id_view, PyBUF_WRITABLE)
        PyObject_GetBuffer(values, &value_view, PyBUF_WRITABLE)
        id, value = <int32_t *>id_view.buf, <double *>value_view.buf
        for slot in range(self.used):
            for k in range(self.row_size[slot]):
                id[0] = self.rows[slot][k]
                value[0] = self.get(&self.columns[id[0]], slot)
                id += 1
                value += 1
        PyBuffer_Release(&id_view); PyBuffer_Release(&value_view)
        return {
            "wide": self.wide,
            "factor": self.factor,
            "capacity": self.capacity,
            "names": list(self.names),
            "free_columns": list(self.free_columns),
            "dense": [j for j in range(self.n_columns) if drift_is_dense(&self.columns[j])],
            "free_slots": list(self.free_slots),
            "sizes": sizes,
            "ids": ids,
            "values": values,
            "weight": array("d", [self.weight[slot] for slot in range(self.used)]),
            "scale": array("d", [self.power(slot) for slot in range(self.used)]),
            "squared": array("d", [self.squared[slot] for slot in range(self.used)]),
        }

    @cython.binding(True)  # or it cannot be a class method under the limited API
    @classmethod
    def restore(cls, kernel, limit, state):
        """Build the store that gave `state`."""
        cdef ColumnStore self = cls(kernel, state["wide"], limit)
        cdef int slot, j, k, size, position = 0
        self.factor = state["factor"]
        holes = set(state["free_columns"])
        self.reserve_slots(state["capacity"])
        for j, name in enumerate(state["names"]):
            self.append_column()
            if j not in holes:
                self.name_column(j, name)
        self.free_columns = list(state["free_columns"])
        self.free_slots = list(state["free_slots"])
        self.used = len(state["sizes"])
        dense = set(state["dense"])
        ids, values = state["ids"], state["values"]
        for slot, size in enumerate(state["sizes"]):
            self.rows[slot] = <int32_t *>grown(NULL, max(size, 0) * sizeof(int32_t))
            for k in range(size):
                self.put(ids[position], slot, values[position])
                position += 1
            self.weight[slot] = state["weight"][slot]
            self.squared[slot] = state["squared"][slot]
            self.share[slot] = self.share_of(self.squared[slot])
            self.scale[slot] = state["scale"][slot] * self.share[slot]
        for j in range(self.n_columns):
            self.make_dense(j, j in dense)
        return self
