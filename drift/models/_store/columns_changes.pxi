# Supports that come and go, and the log from which an update that fails is undone.
#
# While an update is under way a support that goes only loses its coefficient: its row stays in its
# slot until the update is finished, so that taking it back needs no memory and none of the
# caller's code.

cdef class Changes(Batches):
    """Supports in order of insertion."""

    # What was before the update, and how many supports of then are left: the oldest in the order.
    cdef int old_used, old_capacity, old_columns, n_old
    cdef int64_t old_added
    cdef double old_factor

    # --- the order -----------------------------------------------------------------------------

    def n_held(self):
        """Number of supports."""
        return self.size

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
        cdef dict fresh = {}  # made before names are borrowed
        self.check_reader()
        if not self.current or (self.n_unknown and not self.by_index):
            if type(x) is not dict and type(x) is not Row:
                x = as_dict(x)  # which holds the names that are noted
            self.read(x)  # those that were noted before may be gone
            if not (self.plain or self.by_index):
                self.start_point()
                kept = self.read_any(x)
        reserve(&self.added, 1)
        reserve(&self.converted, 2 * (self.count + self.n_unknown))  # it comes and may go again
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
        if self.window is not None:
            self.window.change(slot)
        if self.logging:
            push(&self.added, slot)
        self.scored = self.filled = self.current = False
        self.sort_point()
        for k in range(self.count):
            self.put(self.sorted_ids[k], slot, self.sorted_values[k])
        if self.n_unknown:
            self.put_unknown(slot, fresh)
        self.weight[slot] = coefficient / self.factor
        self.scale[slot] = self.point_scale
        self.squared[slot] = self.point_squared
        self.share[slot] = self.point_share
        self.n_added += 1
        self.order[self.size] = slot
        self.serials[self.size] = self.n_added
        self.size += 1
        return slot

    cdef int put_unknown(self, int slot, dict fresh) except -1:
        """Give the point's features that no support has their columns; `fresh` is an empty dict.

        Columns are summed in the order in which they are made, and so are made in the order of the
        names, whatever that of the example is.
        """
        cdef int k, n = self.n_unknown, largest = 0
        cdef double value
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
        while i < self.size and self.order[i] != slot:
            i += 1
        if i == self.size:
            raise IndexError(f"no support is in slot {slot}")
        self.evict(i)

    def evict(self, int i):
        """Forget support number `i`, as `slot` counts; return the slot that it leaves."""
        cdef int slot = self.slot(i)
        cdef Gone *gone
        self.guard.check()
        i += self.size if i < 0 else 0
        if self.n_gone == self.gone_room:
            self.gone = <Gone *>grown(self.gone, (2 * self.gone_room + 8) * sizeof(Gone))
            self.gone_room = 2 * self.gone_room + 8
        self.reserve_point(self.row_size[slot])
        gone = &self.gone[self.n_gone]
        gone.slot, gone.weight, gone.serial = slot, self.weight[slot], self.serials[i]
        gone.place = i if i < self.n_old else -1
        self.n_old -= i < self.n_old
        self.n_gone += 1
        self.scored = self.filled = self.current = False
        self.size -= 1
        memmove(&self.order[i], &self.order[i + 1], (self.size - i) * sizeof(int32_t))
        memmove(&self.serials[i], &self.serials[i + 1], (self.size - i) * sizeof(int64_t))
        self.weight[slot] = 0.0
        if not self.logging:
            problem = self.finish()
            if problem is not None:
                raise problem
        return slot

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
            self.log_conversion(j, dense)
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
        cdef double *kernels
        cdef double largest = 0.0
        cdef int k, j, n = self.size if slots is None else <int>(buffer.view.len // sizeof(int32_t))
        self.read_support(slot)
        self.compute_row()
        work = held(bytearray(self.used * sizeof(double)))
        kernels = doubles(work, self.used)
        self.self_kernels(kernels)
        for k in range(n):
            j = chosen[k]
            if j != slot and kernels[j] > 0.0:
                largest = max(largest, self.row[j] / kernels[j] * self.row[j])
        for k in range(n):
            j = chosen[k]
            if j != slot and kernels[j] > 0.0 and self.row[j] / kernels[j] * self.row[j] >= largest * (1.0 - self.tie) > 0.0:
                return j, self.row[j] / kernels[j]
        return -1, 0.0

    def merge(self, int slot, int target, double share):
        """Forget a support and add a share of its coefficient to another's; what cancels is 0."""
        if share != 0.0:
            self.keep_weights()
            self.weight[target] = self.sum_of(self.weight[target], share * self.weight[slot])
        self.remove(slot)

    # --- an update, whole or none --------------------------------------------------------------

    def begin(self):
        """Begin an update: what follows can be undone until it is finished."""
        self.old_factor, self.old_added = self.factor, self.n_added
        self.old_used, self.n_old = self.used, self.size
        self.old_capacity, self.old_columns = self.capacity, self.n_columns
        self.least_free = self.free_columns.size
        self.made.size = self.converted.size = self.added.size = self.n_gone = 0
        self.weights_kept = False
        self.calibration.begin(); self.logging = True

    def undo(self):
        """Be again as at the beginning of the update, to the last bit."""
        cdef int k, j, slot
        cdef Gone *gone
        self.size = self.n_old
        for k in range(self.n_gone - 1, -1, -1):
            gone = &self.gone[k]
            self.weight[gone.slot] = gone.weight
            if gone.place >= 0:
                j = gone.place
                memmove(&self.order[j + 1], &self.order[j], (self.size - j) * sizeof(int32_t))
                memmove(&self.serials[j + 1], &self.serials[j], (self.size - j) * sizeof(int64_t))
                self.order[j], self.serials[j] = gone.slot, gone.serial
                self.size += 1
        if self.weights_kept:
            memcpy(self.weight, self.old_weight, self.old_used * sizeof(double))
        self.n_gone = 0
        for k in range(self.added.size - 1, -1, -1):
            slot = self.added.items[k]
            self.drop_row(slot)
            if slot < self.old_used:
                push(&self.free_slots, slot)
        self.free_columns.size = self.least_free
        for k in range(self.made.size - 1, -1, -1):
            j = self.made.items[k]
            if self.names[j] is not None:
                self.free_column(j)
            self.free_columns.size = self.least_free
            if j < self.old_columns:
                self.free_columns.items[self.least_free] = j
                self.least_free += 1
                self.free_columns.size += 1
        self.n_columns = self.old_columns
        self.capacity = self.old_capacity
        self.calibration.undo(); self.logging = False
        for k in range(self.converted.size - 1, -1, -1):
            j = self.converted.items[k]
            try:
                if max(j, ~j) < self.n_columns:
                    self.make_dense(max(j, ~j), j < 0)
            except MemoryError:
                pass  # the other form has the same values
        self.used = self.old_used
        self.factor, self.n_added = self.old_factor, self.old_added
        self.scored = self.filled = self.current = False

    def finish(self):
        """Let the supports go that the update has removed; return what their names' code raises."""
        cdef int i, k, slot, n_emptied
        problem = None
        self.logging = False
        if self.n_gone:
            self.scored = self.filled = self.current = False
        for i in range(self.n_gone):
            slot = self.gone[i].slot
            n_emptied = self.drop_row(slot)
            for k in range(n_emptied):
                DRIFT_PREFETCH(<PyObject *>self.names[<int>(self.keys[k] >> 32)])
            for k in range(n_emptied - 1, -1, -1):  # the lowest is taken first
                problem = self.free_column(<int>(self.keys[k] >> 32)) or problem
            push(&self.free_slots, slot)
        self.n_gone = 0
        return problem
