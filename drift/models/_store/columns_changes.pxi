# Supports that come and go, and the log from which an update that fails is taken back.
#
# While an update is under way a support that goes only loses its coefficient: its row stays in its
# slot until the update is finished, so that taking it back needs no memory and none of the
# caller's code.

cdef class Changes(Batches):
    """Supports in order of insertion."""

    # What was before the update: sizes, and the coefficients and the order of the supports.
    cdef int old_used, old_capacity, old_columns, old_size
    cdef int64_t old_added
    cdef double old_factor
    cdef double *old_weight
    cdef int32_t *old_order
    cdef int64_t *old_serials
    cdef int old_room

    def __dealloc__(self):
        free(self.old_weight); free(self.old_order); free(self.old_serials)

    # --- the order -----------------------------------------------------------------------------

    def slot(self, int i):
        """Slot of support number `i`, the oldest first; from the newest backwards below 0."""
        if not -self.size <= i < self.size:
            raise IndexError(f"support {i} of {self.size}")
        return self.order[i + self.size if i < 0 else i]

    def slots(self):
        """The supports' slots, the oldest first."""
        return [self.order[k] for k in range(self.size)]

    def serials_held(self):
        """Number of each support among all that ever came, from 1, the oldest first."""
        return [self.serials[k] for k in range(self.size)]

    # --- coming and going ----------------------------------------------------------------------

    def add(self, x, double coefficient):
        """Store `x`, the example read last, as a support; return its slot."""
        cdef int slot, k
        cdef int32_t *row
        cdef list kept = None
        self.check_reader()
        if not self.current or (self.n_unknown and not self.by_index):
            self.read(x)  # the names that were noted of it may be gone
            if not (self.plain or self.by_index):
                self.begin_point()
                kept = self.note_any(x if type(x) is dict else as_dict(x))
        reserve(&self.added, 1)
        reserve(&self.turned, 2 * (self.count + self.n_unknown))  # it comes and may go again
        if not self.free_slots.size:
            self.reserve_slots(self.used + 1)
        row = <int32_t *>grown(NULL, (self.count + self.n_unknown) * sizeof(int32_t))
        if self.free_slots.size:
            self.free_slots.size -= 1
            slot = self.free_slots.items[self.free_slots.size]
        else:
            slot = self.used
            self.used += 1
        self.rows[slot] = row
        if self.logging:
            push(&self.added, slot)
        self.scored = self.filled = self.current = False
        self.sort_point()
        for k in range(self.count):
            self.put(self.sorted_ids[k], slot, self.sorted_values[k])
        if self.n_unknown:
            self.put_unknown(slot)
        self.weight[slot] = coefficient / self.factor
        self.scale[slot] = self.point_scale
        self.squared[slot] = self.point_squared
        self.share[slot] = self.point_share
        self.n_added += 1
        self.order[self.size] = slot
        self.serials[self.size] = self.n_added
        self.size += 1
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
        cdef int i = 0
        self.guard.check()
        while i < self.size and self.order[i] != slot:
            i += 1
        if i == self.size:
            raise IndexError(f"no support is in slot {slot}")
        reserve(&self.gone, 1)
        self.reserve_point(self.row_size[slot])
        self.scored = self.filled = self.current = False
        self.size -= 1
        memmove(&self.order[i], &self.order[i + 1], (self.size - i) * sizeof(int32_t))
        memmove(&self.serials[i], &self.serials[i + 1], (self.size - i) * sizeof(int64_t))
        self.weight[slot] = 0.0
        push(&self.gone, slot)
        if not self.logging:
            problem = self.finish()
            if problem is not None:
                raise problem

    cdef int drop_row(self, int slot) noexcept:
        """Take a support's values out of their columns; return how many are empty then, in `keys`."""
        cdef int k, j, size = self.row_size[slot], n_emptied = 0, largest = 0
        cdef bint dense
        cdef int32_t *row = self.rows[slot]
        for k in range(size):
            DRIFT_PREFETCH(&self.columns[row[k]])
        for k in range(size):
            drift_prefetch_head(&self.columns[row[k]])
        for k in range(size):
            j = row[k]
            drift_prefetch_rest(&self.columns[row[min(k + 4, size - 1)]])
            dense = drift_is_dense(&self.columns[j])
            drift_drop(self.wide, &self.columns[j], slot, self.capacity)
            self.note_turn(j, dense)
            if self.columns[j].size == 0:
                largest = max(largest, j)
                self.keys[n_emptied] = <uint64_t>j << 32
                n_emptied += 1
        drift_sort(self.keys, self.spare_keys, n_emptied, largest)
        free(row)
        self.rows[slot] = NULL
        self.row_size[slot] = 0
        self.weight[slot] = self.scale[slot] = self.squared[slot] = 0.0
        self.share[slot] = self.share_of(0.0)
        return n_emptied

    # --- merging -------------------------------------------------------------------------------

    def least(self, sizes=None):
        """Slot of the support of the smallest size but the newest; of equals the oldest.

        `sizes` is a buffer of doubles by slot; without one they are those of the coefficients.
        """
        cdef Buffer buffer = None if sizes is None else held(sizes)
        cdef const double *size = self.weight if sizes is None else doubles(buffer, self.used)
        cdef double smallest = INFINITY
        cdef int k
        for k in range(self.size - 1):
            smallest = min(smallest, fabs(size[self.order[k]]))
        for k in range(self.size - 1):
            if fabs(size[self.order[k]]) <= smallest * (1.0 + self.tie):
                return self.order[k]
        raise IndexError("no support but the newest")

    def nearest(self, int slot, slots=None):
        """Take a support as the point; return the slot of the nearest other, and what it is worth.

        The nearest is the one at the smallest angle, of equals the first; the projection of
        ``k(x_i, .)`` onto its ``k(x_j, .)`` is ``k(x_i, x_j) / k(x_j, x_j)`` of that, which comes
        second; -1 and 0.0 where every other is orthogonal. `slots` is a buffer of those to choose
        from, int32; without one it is all supports, the oldest first.
        """
        cdef Buffer buffer = None if slots is None else held(slots)
        cdef const int32_t *chosen = self.order if slots is None else <int32_t *>buffer.view.buf
        cdef double *own
        cdef double largest = 0.0
        cdef int k, j, n = self.size if slots is None else <int>(buffer.view.len // sizeof(int32_t))
        self.read_support(slot)
        self.compute_row()
        work = held(bytearray(self.used * sizeof(double)))
        own = doubles(work, self.used)
        self.compute_own(own)
        for k in range(n):
            j = chosen[k]
            if j != slot and own[j] > 0.0:
                largest = max(largest, self.row[j] / own[j] * self.row[j])
        for k in range(n):
            j = chosen[k]
            if j != slot and own[j] > 0.0 and self.row[j] / own[j] * self.row[j] >= largest * (1.0 - self.tie) > 0.0:
                return j, self.row[j] / own[j]
        return -1, 0.0

    def merge(self, int slot, int target, double share):
        """Forget a support and add a share of its coefficient to another's; what cancels is 0."""
        if share != 0.0:
            self.weight[target] = self.sum_of(self.weight[target], share * self.weight[slot])
        self.remove(slot)

    # --- an update, whole or none --------------------------------------------------------------

    def begin(self):
        """Begin an update: what follows can be taken back until it is finished."""
        if self.old_room < self.capacity:
            self.old_weight = <double *>grown(self.old_weight, self.capacity * sizeof(double))
            self.old_order = <int32_t *>grown(self.old_order, self.capacity * sizeof(int32_t))
            self.old_serials = <int64_t *>grown(self.old_serials, self.capacity * sizeof(int64_t))
            self.old_room = self.capacity
        if self.used:
            memcpy(self.old_weight, self.weight, self.used * sizeof(double))
            memcpy(self.old_order, self.order, self.size * sizeof(int32_t))
            memcpy(self.old_serials, self.serials, self.size * sizeof(int64_t))
        self.old_factor, self.old_added = self.factor, self.n_added
        self.old_used, self.old_size = self.used, self.size
        self.old_capacity, self.old_columns = self.capacity, self.n_columns
        self.least_free = self.free_columns.size
        self.made.size = self.turned.size = self.added.size = self.gone.size = 0
        self.calibration.begin(); self.logging = True

    def undo(self):
        """Be again as at the beginning of the update, to the last bit."""
        cdef int k, j, slot
        for k in range(self.added.size - 1, -1, -1):
            slot = self.added.items[k]
            self.drop_row(slot)
            if slot < self.old_used:
                push(&self.free_slots, slot)
        self.free_columns.size = self.least_free
        for k in range(self.made.size - 1, -1, -1):
            j = self.made.items[k]
            if self.name_of(j) is not None:
                self.free_column(j)
            self.free_columns.size = self.least_free
            if j < self.old_columns:
                self.free_columns.items[self.least_free] = j
                self.least_free += 1
                self.free_columns.size += 1
        self.n_columns = self.old_columns
        self.capacity = self.old_capacity
        self.calibration.undo(); self.logging = False
        for k in range(self.turned.size - 1, -1, -1):
            j = self.turned.items[k]
            try:
                if max(j, ~j) < self.n_columns:
                    self.make_dense(max(j, ~j), j < 0)
            except MemoryError:
                pass  # the other form has the same values
        self.gone.size = 0
        self.used, self.size = self.old_used, self.old_size
        self.factor, self.n_added = self.old_factor, self.old_added
        if self.used:
            memcpy(self.weight, self.old_weight, self.used * sizeof(double))
            memcpy(self.order, self.old_order, self.size * sizeof(int32_t))
            memcpy(self.serials, self.old_serials, self.size * sizeof(int64_t))
        self.scored = self.filled = self.current = False

    def finish(self):
        """Let the supports go that the update has removed; return what their names' code raises."""
        cdef int i, k, slot, n_emptied
        problem = None
        self.logging = False
        if self.gone.size:
            self.scored = self.filled = self.current = False
        for i in range(self.gone.size):
            slot = self.gone.items[i]
            n_emptied = self.drop_row(slot)
            for k in range(0 if self.numbered else n_emptied):
                DRIFT_PREFETCH(<PyObject *>self.names[<int>(self.keys[k] >> 32)])
            for k in range(n_emptied - 1, -1, -1):  # the lowest is taken first
                problem = self.free_column(<int>(self.keys[k] >> 32)) or problem
            push(&self.free_slots, slot)
        self.gone.size = 0
        return problem
