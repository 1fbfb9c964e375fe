# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The memory of a tracker: the arrays of `tables.py` with room to grow, and its supports."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t
from libc.string cimport memcpy

import numpy as np

from drift.models._store.features import LANES
from drift.models._tracker.tables import ARRAYS, DIMENSIONS
from drift.models._tracker.room import allocated, arrays_in, places

cdef extern from "core.h":
    void drift_supports_clear(DriftSupports *) nogil
    int drift_supports_reserve(DriftSupports *, int) nogil
    int drift_supports_add(DriftSupports *, int, const int32_t *, const double *, int) nogil
    void drift_supports_read(DriftSupports *, int, int32_t *, double *) nogil
    size_t drift_supports_bytes(const DriftSupports *) nogil
    enum: DRIFT_N_ARRAYS, DRIFT_N_DIMENSIONS


cdef void *address(array) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void *found = view.buf
    PyBuffer_Release(&view)  # the array is kept all the same
    return found


@cython.no_gc  # nothing in it leads back; and whoever counts what refers to what counts it once, by the core
cdef class State:
    """A block of memory with the arrays, and pointers to them.

    Parameters
    ----------
    room
        Size of each dimension.
    """

    def __init__(self, dict room):
        self.take(room, allocated(room, None, {}))
        self.t.inserted = self.t.evicted = self.t.nearest = -1
        self.t.n_rows = 1

    def __dealloc__(self):
        drift_supports_clear(&self.t.supports)

    cdef size_t size(self):
        """Bytes of the arrays and of the supports."""
        return sizeof(DriftTracker) + self.block.nbytes + drift_supports_bytes(&self.t.supports)

    cdef dict room(self):
        """Size of each dimension: the struct has them behind the arrays, in the order of their names."""
        cdef int *sizes = <int *>(<void **>&self.t + DRIFT_N_ARRAYS)
        return {name: sizes[i] for i, name in enumerate(DIMENSIONS)}

    def arrays(self):
        """Return the arrays by name."""
        return arrays_in(self.block, self.room())

    cpdef int reserve(self, dict room) except -1:
        """Make room for so much in each dimension; MemoryError changes nothing."""
        before = self.room()
        if all([before[name] >= size for name, size in room.items()]):
            return 0
        room = {name: max(size, room.get(name, 0)) for name, size in before.items()}
        return self.take(room, allocated(room, self.block, before))

    cdef int take(self, dict room, block) except -1:
        cdef void *found[DRIFT_N_ARRAYS]
        cdef int sizes[DRIFT_N_DIMENSIONS]
        cdef char *first = <char *>address(block)
        cdef int i
        cdef list starts = places(room)
        for i in range(DRIFT_N_ARRAYS):
            found[i] = first + <size_t>starts[i]
        for i, name in enumerate(DIMENSIONS):
            sizes[i] = room[name]
        # From here on nothing fails. The struct begins with the arrays, in their order, and the dimensions, in theirs.
        self.block = block
        memcpy(&self.t, found, sizeof(found))
        memcpy(<char *>&self.t + sizeof(found), sizes, sizeof(sizes))
        return 0

    cdef int reserve_slots(self, int n) except -1:
        """Make room for so many supports."""
        if n <= self.t.supports.capacity:
            return 0
        n = (max(n, 2 * self.t.supports.capacity) + LANES - 1) // LANES * LANES
        self.reserve({"slots": n})
        if drift_supports_reserve(&self.t.supports, n):
            raise MemoryError("no room for supports")
        return 0

    def stored(self, dict used):
        """Return copies of the arrays that are kept, of the sizes in use."""
        arrays = self.arrays()
        return {
            name: arrays[name][tuple([slice(used.get(d, d)) for d in array.shape])].copy()
            for name, array in ARRAYS.items()
            if array.stored
        }

    def restore(self, dict arrays):
        """Take over arrays that were checked, for which there is room."""
        own = self.arrays()
        for name, array in arrays.items():
            own[name][tuple([slice(size) for size in array.shape])] = array

    def supports(self):
        """Return the supports by slot: sizes, features and values of each after the other."""
        cdef int i, start = 0
        cdef DriftSupports *s = &self.t.supports
        sizes = np.array([s.sizes[i] for i in range(self.t.n_used)], np.int32)
        numbers, values = np.zeros(sizes.sum(), np.int32), np.zeros(sizes.sum())
        for i in range(self.t.n_used):
            drift_supports_read(s, i, <int32_t *>address(numbers) + start, <double *>address(values) + start)
            start += s.sizes[i]
        return {"sizes": sizes, "numbers": numbers, "values": values.astype(np.float32)}

    def restore_supports(self, dict supports):
        """Take over supports that were checked."""
        cdef int i, n, start = 0, count = <int>len(supports["sizes"])
        own = np.array(supports["numbers"], np.int32)  # which lies as C has it
        wide = np.array(supports["values"], np.float64)
        cdef const int32_t *numbers = <int32_t *>address(own)
        cdef const double *values = <double *>address(wide)
        self.reserve_slots(count)
        for i in range(count):
            n = supports["sizes"][i]
            if drift_supports_add(&self.t.supports, i, numbers + start, values + start, n):
                raise MemoryError("no room for supports")
            start += n
        self.t.n_used = count
