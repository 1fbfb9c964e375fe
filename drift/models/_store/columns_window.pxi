# A window: sums over the dense columns for the next rows of a batch, of which window.h says why.
#
# `Batches.open_window` makes it, `Scores.compute_dots` starts from its sums, `Changes.add` marks slots as changed.

@cython.final
cdef class Window:
    """Rows of a batch from `first` on, each with its sum in every slot."""

    cdef object view  # of the batch
    cdef int first, n_rows, n_slots
    cdef bint wide
    cdef void *recorded
    cdef void *sums
    cdef int changed[DRIFT_CHANGES]  # first slot of each changed block
    cdef int n_changed

    def __cinit__(self, view, int first, int n_slots, bint wide):
        cdef Py_ssize_t real = sizeof(double) if wide else sizeof(float)
        self.view, self.first, self.n_slots, self.wide = view, first, n_slots, wide
        self.recorded = malloc(drift_window_size(wide))
        self.sums = drift_grow(NULL, 0, DRIFT_WINDOW * n_slots * real)
        if self.recorded == NULL or self.sums == NULL:
            raise MemoryError("no memory for a window")

    def __dealloc__(self):
        free(self.recorded); drift_free(self.sums)

    def __sizeof__(self):
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float)
        return object.__sizeof__(self) + drift_window_size(self.wide) + DRIFT_WINDOW * self.n_slots * real

    cdef bint covers(self, int i, int n_slots) noexcept:
        """Whether there are sums of row `i` for this many slots."""
        return self.first <= i < self.first + self.n_rows and n_slots == self.n_slots

    cdef void mark_changed(self, int slot) noexcept:
        """Record a new support in a slot. Sums of a free slot are never used, since its coefficient is 0."""
        cdef int k, block = slot // DRIFT_LANES * DRIFT_LANES
        for k in range(self.n_changed):
            if self.changed[k] == block:
                return
        if self.n_changed == DRIFT_CHANGES:
            self.n_rows = 0
            return
        self.changed[self.n_changed] = block
        self.n_changed += 1

    cdef const void *sums_of(
        self, int i, const DriftColumn *columns, const int32_t *ids, const double *values, int count
    ) noexcept:
        """Sums of a row that it covers; NULL if other columns are dense now."""
        cdef int k, row = i - self.first
        if not drift_is_recorded(self.wide, self.recorded, row, columns, ids, values, count):
            return NULL
        for k in range(self.n_changed):
            drift_sum_block(self.wide, self.recorded, self.sums, row, self.n_slots, self.changed[k])
        return <char *>self.sums + <Py_ssize_t>row * self.n_slots * (sizeof(double) if self.wide else sizeof(float))
