# A tracker's memory: the arrays of `tables.py` with spare capacity, and the supports.

#: Bytes of a cache line; arrays of LARGE bytes start on one, others on a WORD.
cdef enum: LINE = 64, LARGE = 512, WORD = 8
#: Stored arrays and work space: growth for a large example does not move the former.
cdef enum: STORED = 0, WORK = 1, BLOCKS = 2


cdef struct Layout:
    # An array of `tables.py`: bytes of a number; indices of dimensions, or ~size; its block and its group.
    int size, n, block, group
    int dimensions[4]


cdef Layout LAYOUTS[DRIFT_N_ARRAYS]
cdef dict NUMBERS = {name: i for i, name in enumerate(ARRAYS)}


cdef void lay_out() except *:
    cdef int i, k
    cdef list groups = [set(names) for names in GROUPS.values()]
    for i, (name, array) in enumerate(ARRAYS.items()):
        LAYOUTS[i].size, LAYOUTS[i].n = np.dtype(array.type).itemsize, len(array.shape)
        LAYOUTS[i].block = STORED if array.stored else WORK
        LAYOUTS[i].group = [name in group for group in groups].index(True) if array.stored else -1
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
    """Compute each array's offset in its block, and the blocks' sizes."""
    cdef int i, shape[4]
    cdef size_t size, step
    sizes[STORED] = sizes[WORK] = 0
    for i in range(DRIFT_N_ARRAYS):
        size = shape_of(&LAYOUTS[i], room, shape)
        step = LINE if size >= LARGE else WORD
        starts[i] = (sizes[LAYOUTS[i].block] + step - 1) // step * step
        sizes[LAYOUTS[i].block] = starts[i] + size


cdef void copy_strided(char *after, const char *before, const int *after_shape, const int *before_shape, int n, size_t size) noexcept:
    """Copy what two arrays have room for, one of which is at least as large in each dimension."""
    cdef size_t step_after = size, step_before = size
    cdef int k, rows = min(after_shape[0], before_shape[0])
    for k in range(1, n):
        step_after *= after_shape[k]
        step_before *= before_shape[k]
    if step_after == step_before:
        memcpy(after, before, rows * step_before)
        return
    for k in range(rows):
        copy_strided(after + k * step_after, before + k * step_before, after_shape + 1, before_shape + 1, n - 1, size)


cdef void *address(array) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void *memory = view.buf
    PyBuffer_Release(&view)  # the caller keeps the array
    return memory


@cython.no_gc  # it is in no cycle, and tools that measure sizes count it once, by the core
cdef class State:
    """Two blocks of memory with the arrays, and pointers to these: objects would take as much again.

    Parameters
    ----------
    room
        Size of each dimension.
    """

    cdef DriftTracker t
    cdef list blocks

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
        """The struct starts with the arrays, in their order."""
        return <void **>&self.t

    cdef int *room(self) noexcept:
        """The sizes of the dimensions follow, in the order of their names."""
        return <int *>(self.pointers() + DRIFT_N_ARRAYS)

    def array(self, str name):
        """Return an array."""
        cdef int shape[4], i = NUMBERS[name]
        shape_of(&LAYOUTS[i], self.room(), shape)
        block = self.blocks[LAYOUTS[i].block]
        start = <char *>self.pointers()[i] - <char *>address(block)
        return np.ndarray(tuple([shape[k] for k in range(LAYOUTS[i].n)]), ARRAYS[name].type, block, start)

    cpdef int reserve(self, dict room) except -1:
        """Reserve memory for these sizes; MemoryError changes nothing."""
        cdef int sizes[DRIFT_N_DIMENSIONS]
        cdef int i, after_shape[4], before_shape[4]
        cdef size_t starts[DRIFT_N_ARRAYS]
        cdef size_t bytes_before[BLOCKS]
        cdef size_t bytes_after[BLOCKS]
        cdef char *first[BLOCKS]
        cdef bint grows = False
        cdef size_t size = 0
        cdef bint grown[BLOCKS]
        cdef list blocks = list(self.blocks)
        for i, name in enumerate(DIMENSIONS):
            sizes[i] = max(self.room()[i], <int>room.get(name, 0))
            grows = grows or sizes[i] > self.room()[i]
        if not grows:
            return 0
        place(self.room(), starts, bytes_before)
        place(sizes, starts, bytes_after)
        for i in range(BLOCKS):
            grown[i] = blocks[i] is None or bytes_after[i] > bytes_before[i]  # no dimension shrinks
            # A list here would be unsafe: out of memory, Cython 3.3 releases its last number twice.
            size += bytes_after[i] + bytes_before[i] if grown[i] else 0
        check_room(size)
        for i in range(BLOCKS):
            if grown[i]:
                blocks[i] = np.zeros(bytes_after[i] + LINE, np.uint8)
                first[i] = <char *>(<uintptr_t>address(blocks[i]) + LINE - 1 & ~<uintptr_t>(LINE - 1))
        # Nothing fails below.
        for i in range(DRIFT_N_ARRAYS):
            if not grown[LAYOUTS[i].block]:
                continue
            if self.pointers()[i] != NULL:
                shape_of(&LAYOUTS[i], sizes, after_shape)
                shape_of(&LAYOUTS[i], self.room(), before_shape)
                copy_strided(first[LAYOUTS[i].block] + starts[i], <char *>self.pointers()[i], after_shape, before_shape, LAYOUTS[i].n, LAYOUTS[i].size)
            self.pointers()[i] = first[LAYOUTS[i].block] + starts[i]
        memcpy(self.room(), sizes, sizeof(sizes))
        self.blocks = blocks
        return 0

    cdef int reserve_slots(self, int n) except -1:
        """Reserve slots for so many supports."""
        if n <= self.t.supports.capacity:
            return 0
        n = (max(n, 2 * self.t.supports.capacity) + LANES - 1) // LANES * LANES
        self.reserve({"slots": n})
        if drift_supports_reserve(&self.t.supports, n):
            raise MemoryError("no room for supports")
        return 0

    def stored(self, layout):
        """Return copies of the stored arrays by group, of the sizes of a `layout.Layout`."""
        groups = layout.empty(self.n_values())
        self.exchange(layout, groups, False)
        self.read_supports(layout.supports(groups))
        return groups

    def restore(self, layout, dict groups):
        """Copy checked groups of arrays into reserved memory."""
        self.exchange(layout, {name: np.ascontiguousarray(group) for name, group in groups.items()}, True)

    cdef int exchange(self, layout, dict groups, bint inward) except -1:
        """Copy between the memory and contiguous groups, which begin with the arrays of `GROUPS` in order."""
        cdef int i, k, shape[4], room[4], sizes[DRIFT_N_DIMENSIONS]
        cdef char *places[DRIFT_N_ARRAYS]  # by group
        cdef char *own
        cdef size_t size
        for i, name in enumerate(DIMENSIONS):
            sizes[i] = layout.sizes.get(name, 0)  # those of work space are not asked for
        for i, name in enumerate(GROUPS):
            places[i] = <char *>address(groups[name])
        for i in range(DRIFT_N_ARRAYS):
            k = LAYOUTS[i].group
            if k < 0:
                continue
            size = shape_of(&LAYOUTS[i], sizes, shape)
            shape_of(&LAYOUTS[i], self.room(), room)
            own = <char *>self.pointers()[i]
            if inward:
                copy_strided(own, places[k], room, shape, LAYOUTS[i].n, LAYOUTS[i].size)
            else:
                copy_strided(places[k], own, shape, room, LAYOUTS[i].n, LAYOUTS[i].size)
            places[k] += size
        return 0

    cdef int n_values(self) noexcept:
        """Number of the supports' values."""
        cdef int i, n = 0
        for i in range(self.t.n_used):
            n += self.t.supports.sizes[i]
        return n

    def supports(self):
        """Return the supports' sizes by slot, and concatenated features and values."""
        cdef int n = self.n_values()
        supports = [np.empty(self.t.n_used, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)]
        self.read_supports(supports)
        return supports

    cdef int read_supports(self, list supports) except -1:
        """Read the supports into arrays of the right lengths."""
        cdef int i
        sizes, numbers, values = supports
        exact = np.empty(len(values))
        cdef int32_t *size = <int32_t *>address(sizes)
        cdef int32_t *number = <int32_t *>address(numbers)
        cdef double *value = <double *>address(exact)
        for i in range(self.t.n_used):
            size[i] = self.t.supports.sizes[i]
            drift_supports_read(&self.t.supports, i, number, value)
            number += size[i]
            value += size[i]
        values[:] = exact
        return 0

    def restore_supports(self, sizes, numbers, values):
        """Restore checked supports."""
        cdef int i, count = <int>len(sizes)
        kept = [np.array(array, kind) for array, kind in ((sizes, np.int32), (numbers, np.int32), (values, np.float64))]
        cdef const int32_t *size = <int32_t *>address(kept[0])
        cdef const int32_t *number = <int32_t *>address(kept[1])
        cdef const double *value = <double *>address(kept[2])
        self.reserve_slots(count)
        for i in range(count):
            if drift_supports_add(&self.t.supports, i, number, value, size[i]):
                raise MemoryError("no room for supports")
            number += size[i]
            value += size[i]
        self.t.n_used = count
