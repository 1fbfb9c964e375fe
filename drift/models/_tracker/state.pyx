# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The memory of a tracker: the arrays of `tables.py` with room to grow, and its supports."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uintptr_t
from libc.string cimport memcpy

import numpy as np

from drift.models._store.features import LANES
from drift.models._tracker.tables import ARRAYS, DIMENSIONS
from drift.models._tracker.room import check_room

cdef extern from "core.h":
    void drift_supports_clear(DriftSupports *) nogil
    int drift_supports_reserve(DriftSupports *, int) nogil
    int drift_supports_add(DriftSupports *, int, const int32_t *, const double *, int) nogil
    void drift_supports_read(DriftSupports *, int, int32_t *, double *) nogil
    size_t drift_supports_bytes(const DriftSupports *) nogil
    enum: DRIFT_N_ARRAYS, DRIFT_N_DIMENSIONS


#: Bytes of a cache line, of arrays that begin on one, and to which all others are aligned.
cdef enum: LINE = 64, LARGE = 512, WORD = 8
#: The arrays that are stored, and work space: what grows with each example's size does not move the first.
cdef enum: STORED = 0, WORK = 1, BLOCKS = 2


cdef struct Layout:
    # What `tables.py` says of an array: bytes of a number; dimensions by number, or below 0 their sizes less 1; its block.
    int size, n, block
    int dimensions[4]


cdef Layout LAYOUTS[DRIFT_N_ARRAYS]
cdef dict NUMBERS = {name: i for i, name in enumerate(ARRAYS)}


cdef void lay_out() except *:
    cdef int i, k
    for i, array in enumerate(ARRAYS.values()):
        LAYOUTS[i].size, LAYOUTS[i].n = np.dtype(array.type).itemsize, len(array.shape)
        LAYOUTS[i].block = STORED if array.stored else WORK
        for k, d in enumerate(array.shape):
            LAYOUTS[i].dimensions[k] = DIMENSIONS.index(d) if isinstance(d, str) else ~<int>d


lay_out()


cdef size_t shape_of(const Layout *array, const int *room, int *shape) noexcept:
    """Sizes of an array's dimensions; returns its bytes."""
    cdef int k, d
    cdef size_t size = array.size
    for k in range(array.n):
        d = array.dimensions[k]
        shape[k] = room[d] if d >= 0 else ~d
        size *= shape[k]
    return size


cdef void place(const int *room, size_t *starts, size_t *sizes) noexcept:
    """Where each array begins in its block, and the sizes of the blocks."""
    cdef int i, shape[4]
    cdef size_t size, step
    sizes[STORED] = sizes[WORK] = 0
    for i in range(DRIFT_N_ARRAYS):
        size = shape_of(&LAYOUTS[i], room, shape)
        step = LINE if size >= LARGE else WORD
        starts[i] = (sizes[LAYOUTS[i].block] + step - 1) // step * step
        sizes[LAYOUTS[i].block] = starts[i] + size


cdef void spread(char *after, const char *before, const int *wide, const int *narrow, int n, size_t size) noexcept:
    """Copy an array into one that is as large or larger in each dimension."""
    cdef size_t step_after = size, step_before = size
    cdef int k
    for k in range(1, n):
        step_after *= wide[k]
        step_before *= narrow[k]
    if step_after == step_before:
        memcpy(after, before, narrow[0] * step_before)
        return
    for k in range(narrow[0]):
        spread(after + k * step_after, before + k * step_before, wide + 1, narrow + 1, n - 1, size)


cdef void *address(array) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void *found = view.buf
    PyBuffer_Release(&view)  # the array is kept all the same
    return found


@cython.no_gc  # nothing in it leads back; and whoever counts what refers to what counts it once, by the core
cdef class State:
    """Two blocks of memory with the arrays, and pointers to these: an object for each would take as much again.

    Parameters
    ----------
    room
        Size of each dimension.
    """

    def __init__(self, dict room):
        self.blocks = [None, None]
        self.reserve(room)
        self.t.inserted = self.t.evicted = self.t.nearest = -1
        self.t.n_rows = 1

    def __dealloc__(self):
        drift_supports_clear(&self.t.supports)

    cdef size_t size(self):
        """Bytes of the arrays and of the supports."""
        return sizeof(DriftTracker) + sum([block.nbytes for block in self.blocks]) + drift_supports_bytes(&self.t.supports)

    cdef void **pointers(self) noexcept:
        """The struct begins with the arrays, in their order."""
        return <void **>&self.t

    cdef int *room(self) noexcept:
        """Behind these it has the size of each dimension, in the order of their names."""
        return <int *>(self.pointers() + DRIFT_N_ARRAYS)

    def array(self, str name):
        """Return an array."""
        cdef int shape[4], i = NUMBERS[name]
        shape_of(&LAYOUTS[i], self.room(), shape)
        block = self.blocks[LAYOUTS[i].block]
        start = <char *>self.pointers()[i] - <char *>address(block)
        return np.ndarray(tuple([shape[k] for k in range(LAYOUTS[i].n)]), ARRAYS[name].type, block, start)

    cpdef int reserve(self, dict room) except -1:
        """Make room for so much in each dimension; MemoryError changes nothing."""
        cdef int sizes[DRIFT_N_DIMENSIONS]
        cdef int i, wide[4], narrow[4]
        cdef size_t starts[DRIFT_N_ARRAYS]
        cdef size_t bytes_before[BLOCKS]
        cdef size_t bytes_after[BLOCKS]
        cdef char *first[BLOCKS]
        cdef bint grows = False
        cdef size_t size = 0
        cdef bint anew[BLOCKS]
        cdef list blocks = list(self.blocks)
        for i, name in enumerate(DIMENSIONS):
            sizes[i] = max(self.room()[i], <int>room.get(name, 0))
            grows = grows or sizes[i] > self.room()[i]
        if not grows:
            return 0
        place(self.room(), starts, bytes_before)
        place(sizes, starts, bytes_after)
        for i in range(BLOCKS):
            anew[i] = blocks[i] is None or bytes_after[i] > bytes_before[i]  # no dimension shrinks
            # No list of them: where there is no memory for one, Cython 3.3 lets go of its last number twice.
            size += bytes_after[i] + bytes_before[i] if anew[i] else 0
        check_room(size)
        for i in range(BLOCKS):
            if anew[i]:
                blocks[i] = np.zeros(bytes_after[i] + LINE, np.uint8)
                first[i] = <char *>(<uintptr_t>address(blocks[i]) + LINE - 1 & ~<uintptr_t>(LINE - 1))
        # From here on nothing fails.
        for i in range(DRIFT_N_ARRAYS):
            if not anew[LAYOUTS[i].block]:
                continue
            if self.pointers()[i] != NULL:
                shape_of(&LAYOUTS[i], sizes, wide)
                shape_of(&LAYOUTS[i], self.room(), narrow)
                spread(first[LAYOUTS[i].block] + starts[i], <char *>self.pointers()[i], wide, narrow, LAYOUTS[i].n, LAYOUTS[i].size)
            self.pointers()[i] = first[LAYOUTS[i].block] + starts[i]
        memcpy(self.room(), sizes, sizeof(sizes))
        self.blocks = blocks
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
        return {
            name: self.array(name)[tuple([slice(used.get(d, d)) for d in array.shape])].copy()
            for name, array in ARRAYS.items()
            if array.stored
        }

    def restore(self, dict arrays):
        """Take over arrays that were checked, for which there is room."""
        for name, array in arrays.items():
            self.array(name)[tuple([slice(size) for size in array.shape])] = array

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
