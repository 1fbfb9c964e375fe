# Adding and evicting supports, changing coefficients, and the log from which a failed update is undone.
#
# During an update an evicted support only loses its coefficient. Its values stay in their columns until the
# update is finished, so that undoing it allocates nothing and runs none of the caller's code.
#
# What changes something must
# - reserve memory before it changes anything, so that it fails as a whole. Only `add` may fail in between, because
#   it needs columns and calls the code of names. So it always runs within an update, which undoes it;
# - log what `undo` cannot restore otherwise: `save_coefficients` before a coefficient of a remaining support changes;
# - set to False what is not valid any more of `point_valid`, `kernels_valid` and `score_valid`;
# - call `window.mark_changed(slot)` if it writes values into a slot, or later rows of the batch use old sums.

cdef struct Evicted:
    # A support that an update has evicted.
    int slot
    int age_rank  # among the supports from before the update that were left; -1: it is newer
    int64_t serial
    double unscaled_coefficient  # its coefficient divided by `coefficient_factor`
    double dot_factor


cdef class Changes(Scores):
    """The layer that changes the supports and their coefficients, and undoes that."""

    # The log of the update: values from before it, and what it added and evicted.
    cdef int old_n_slots, old_capacity, old_n_columns
    cdef int n_old_left  # supports from before the update that it has not evicted: the oldest
    cdef int64_t old_n_added
    cdef double old_coefficient_factor
    cdef bint coefficients_saved  # a coefficient of a remaining support has changed; `old_coefficients` has all of them
    cdef double *old_coefficients  # unscaled
    cdef int old_coefficients_room
    cdef Stack added  # slots
    cdef int n_values_added  # in them
    cdef Evicted *evicted
    cdef int n_evicted, evicted_room

    def __dealloc__(self):
        free(self.added.items); free(self.evicted); free(self.old_coefficients)

    cdef Py_ssize_t log_bytes(self) noexcept:
        return self.old_coefficients_room * sizeof(double) + self.evicted_room * sizeof(Evicted)

    # --- adding and evicting --------------------------------------------------------------------

    def add(self, x, double coefficient):
        """Add an example as the newest support; return its slot."""
        cdef bint outermost
        if self.in_update:
            return self.add_logged(x, coefficient)
        outermost = self.guard.enter()
        try:
            self.guard.join_undoing(self)
            slot = self.add_logged(x, coefficient)
        except:
            self.guard.undo(outermost)
            raise
        self.guard.finish(outermost)
        return slot

    cdef object add_logged(self, x, double coefficient):
        """Add a support within an update, which undoes what is left if a name's code raises."""
        cdef int slot, k
        cdef int32_t *features
        cdef list owned = None
        cdef dict new_features = {}  # created before names are borrowed
        # New names are borrowed, and may be gone.
        if not self.point_valid or self.step_example != <PyObject *>x or (self.n_unknown and not self.by_index):
            if type(x) is not dict and type(x) is not Row:
                x = as_dict(x)  # a dict that keeps the names alive
            self.read(x)
            if self.n_unknown and not (self.plain or self.by_index):
                self.start_point()
                owned = self.read_any(x)
        if self.kernel_kind == DRIFT_CUSTOM:
            self.self_kernel()  # every score of this support would be refused if it is not finite
        if not self.free_slots.size:
            self.reserve_slots(self.n_slots + 1)
        reserve(&self.added, 1)
        self.n_values_added += self.n_terms + self.n_unknown
        # Adding a value may convert its column, and removing any of the update's values may, too.
        reserve(&self.converted, 2 * self.n_values_added)
        features = <int32_t *>grown(NULL, (self.n_terms + self.n_unknown) * sizeof(int32_t))
        if self.free_slots.size:
            self.free_slots.size -= 1
            slot = self.free_slots.items[self.free_slots.size]
        else:
            slot = self.n_slots
            self.n_slots += 1
        self.features[slot] = features
        if self.window is not None:
            self.window.mark_changed(slot)
        push(&self.added, slot)
        self.score_valid = self.kernels_valid = self.point_valid = False
        self.sort_point()
        for k in range(self.n_terms):
            self.put(self.sorted_terms.ids[k], slot, self.sorted_terms.values[k])
        if self.n_unknown:
            self.put_unknown(slot, new_features)
        self.unscaled_coefficients[slot] = coefficient / self.coefficient_factor
        self.dot_factors[slot] = self.point_dot_factor
        self.squared_norms[slot] = self.point_squared_norm
        self.cosine_factors[slot] = self.point_cosine_factor
        self.n_added += 1
        self._slots_by_age[self._n_supports] = slot
        self._serials_by_age[self._n_supports] = self.n_added
        self._n_supports += 1
        return slot

    cdef int put_unknown(self, int slot, dict new_features) except -1:
        """Create columns for the point's new features; `new_features` is an empty dict.

        Columns are summed in the order of their creation. So they are created in the order of the
        names, which does not depend on the example.
        """
        cdef int k, j, n = self.n_unknown, largest = 0
        cdef double value
        if self.by_index and self.row_names is None:
            for k in range(n):
                largest = max(largest, self.given[self.unknown[k]].index)
                self.keys[k] = (<uint64_t>self.given[self.unknown[k]].index << 32) | <uint64_t>self.unknown[k]
            drift_sort(self.keys, self.spare_keys, n, largest)
            for k in range(n):
                value = self.given[<uint32_t>self.keys[k]].value
                self.put(self.new_column(<int32_t>(self.keys[k] >> 32)), slot, value / self.divisor)
            return 0
        for k in range(n):
            j = self.unknown[k]
            name = self.name_of(self.given[j].index) if self.by_index else <object>self.given[j].name
            new_features[name] = self.given[j].value
        for name in in_order(list(new_features)):
            self.put(self.new_column(name), slot, <double>new_features[name] / self.divisor)
        return 0

    def evict_slot(self, int slot):
        """Evict the support in a slot."""
        cdef int i = 0
        while i < self._n_supports and self._slots_by_age[i] != slot:
            i += 1
        if i == self._n_supports:
            raise IndexError(f"no support is in slot {slot}")
        self.evict(i)

    def evict(self, int i):
        """Evict the `i`-th oldest support, as `slot` counts; return its slot."""
        cdef int slot = self.slot(i)
        cdef Evicted *evicted
        self.guard.check()
        i += self._n_supports if i < 0 else 0
        if self.n_evicted == self.evicted_room:
            self.evicted = <Evicted *>grown(self.evicted, (2 * self.evicted_room + 8) * sizeof(Evicted))
            self.evicted_room = 2 * self.evicted_room + 8
        self.reserve_point(self.n_features[slot])  # for `keys` in `drop_features`; a restored support was never read
        evicted = &self.evicted[self.n_evicted]
        evicted.slot, evicted.serial = slot, self._serials_by_age[i]
        evicted.unscaled_coefficient, evicted.dot_factor = self.unscaled_coefficients[slot], self.dot_factors[slot]
        evicted.age_rank = i if i < self.n_old_left else -1
        self.n_old_left -= i < self.n_old_left
        self.n_evicted += 1
        self.score_valid = self.kernels_valid = self.point_valid = False
        self._n_supports -= 1
        memmove(&self._slots_by_age[i], &self._slots_by_age[i + 1], (self._n_supports - i) * sizeof(int32_t))
        memmove(&self._serials_by_age[i], &self._serials_by_age[i + 1], (self._n_supports - i) * sizeof(int64_t))
        self.unscaled_coefficients[slot] = self.dot_factors[slot] = 0.0
        if not self.in_update:
            problem = self.finish()
            if problem is not None:
                raise problem
        return slot

    cdef int drop_features(self, int slot) noexcept:
        """Delete a support's values from its columns; return how many are empty now, and list these in `keys`."""
        cdef int k, j, size = self.n_features[slot], n_emptied = 0, largest = 0
        cdef bint dense
        cdef int32_t *features = self.features[slot]
        for k in range(size):
            DRIFT_PREFETCH(&self.columns[features[k]])
        for k in range(size):
            drift_prefetch_head(&self.columns[features[k]])
        for k in range(size):
            j = features[k]
            drift_prefetch_rest(&self.columns[features[min(k + DRIFT_AHEAD, size - 1)]])
            dense = drift_is_dense(&self.columns[j])
            drift_drop(self.wide, &self.columns[j], slot, self.capacity)
            self.log_conversion(j, dense)
            if self.columns[j].size == 0:
                largest = max(largest, j)
                self.keys[n_emptied] = <uint64_t>j << 32
                n_emptied += 1
        drift_sort(self.keys, self.spare_keys, n_emptied, largest)
        free(features)
        self.features[slot] = NULL
        self.n_features[slot] = 0
        self.unscaled_coefficients[slot] = self.dot_factors[slot] = self.squared_norms[slot] = 0.0
        self.cosine_factors[slot] = self.cosine_factor_of(0.0)
        return n_emptied

    # --- coefficients ---------------------------------------------------------------------------

    def set_coefficients(self, values):
        """Set the coefficient of each slot; free slots ignore it."""
        cdef Buffer buffer = buffer_of(values, b"d")
        self.save_coefficients()
        if self.n_slots:
            memcpy(self.unscaled_coefficients, doubles(buffer, self.n_slots), self.n_slots * sizeof(double))
        self.coefficient_factor = 1.0
        self.clear_free_coefficients()
        self.score_valid = False

    def add_coefficients(self, values):
        """Add a number to the coefficient of each slot; free slots ignore it."""
        cdef Buffer buffer = buffer_of(values, b"d")
        cdef double *by_slot = doubles(buffer, self.n_slots)
        cdef double *coefficient = self.unscaled_coefficients
        cdef int slot
        self.save_coefficients()
        for slot in range(self.n_slots):
            coefficient[slot] = self.sum_or_zero(coefficient[slot], by_slot[slot] / self.coefficient_factor)
        self.clear_free_coefficients()
        self.score_valid = False

    cdef void clear_free_coefficients(self) noexcept:
        """Set coefficients of free and evicted slots to 0."""
        cdef int k
        for k in range(self.free_slots.size):
            self.unscaled_coefficients[self.free_slots.items[k]] = 0.0
        for k in range(self.n_evicted):
            self.unscaled_coefficients[self.evicted[k].slot] = 0.0

    cdef int save_coefficients(self) except -1:
        """Log all coefficients, before one of a remaining support changes."""
        cdef int k
        if not self.in_update or self.coefficients_saved or not self.n_slots:
            return 0
        if self.old_coefficients_room < self.capacity:
            self.old_coefficients = <double *>grown(self.old_coefficients, self.capacity * sizeof(double))
            self.old_coefficients_room = self.capacity
        memcpy(self.old_coefficients, self.unscaled_coefficients, self.n_slots * sizeof(double))
        for k in range(self.n_evicted):
            self.old_coefficients[self.evicted[k].slot] = self.evicted[k].unscaled_coefficient
        self.coefficients_saved = True
        return 0

    cdef inline double sum_or_zero(self, double a, double b) noexcept:
        """Sum; 0 if the terms cancel within rounding."""
        return 0.0 if fabs(a + b) <= self.relative_tolerance * (fabs(a) + fabs(b)) else a + b

    def scale_coefficients(self, double c):
        """Multiply every coefficient by a number, in constant time."""
        cdef int slot
        self.coefficient_factor *= c
        if not min_coefficient_factor < fabs(self.coefficient_factor) < max_coefficient_factor:
            self.save_coefficients()
            for slot in range(self.n_slots):
                self.unscaled_coefficients[slot] *= self.coefficient_factor
            self.coefficient_factor = 1.0
            self.score_valid = False

    # --- merging -------------------------------------------------------------------------------

    def merge(self, int slot, int target, double ratio):
        """Evict a support and add its coefficient times a ratio to another's; if they cancel, 0."""
        cdef double *coefficient = self.unscaled_coefficients
        self.check_slot(slot)
        if ratio != 0.0:
            self.check_slot(target)
            if target == slot:
                raise ValueError(f"support {slot} cannot be merged into itself")
            self.save_coefficients()
            coefficient[target] = self.sum_or_zero(coefficient[target], ratio * coefficient[slot])
        self.evict_slot(slot)

    # --- atomic updates -------------------------------------------------------------------------

    def start(self):
        """Start an update: changes can be undone until it is finished."""
        self.old_coefficient_factor, self.old_n_added = self.coefficient_factor, self.n_added
        self.old_n_slots, self.n_old_left = self.n_slots, self._n_supports
        self.old_capacity, self.old_n_columns = self.capacity, self.n_columns
        self.fewest_free = self.free_columns.size
        self.named.size = self.converted.size = self.added.size = self.n_evicted = 0
        self.coefficients_saved, self.n_values_added = False, 0
        self.calibration.start(); self.in_update = True

    def undo(self):
        """Restore the state before the update, bit for bit unless memory is out: see `make_dense` below."""
        cdef int k, j, n, slot
        cdef Evicted *evicted
        # Supports that the update added stand after the old ones. Evicted ones return to their age ranks, the last
        # one first, and to their coefficients.
        self._n_supports = self.n_old_left
        for k in range(self.n_evicted - 1, -1, -1):
            evicted = &self.evicted[k]
            self.unscaled_coefficients[evicted.slot] = evicted.unscaled_coefficient
            self.dot_factors[evicted.slot] = evicted.dot_factor
            j = evicted.age_rank
            if j >= 0:
                n = self._n_supports - j
                memmove(&self._slots_by_age[j + 1], &self._slots_by_age[j], n * sizeof(int32_t))
                memmove(&self._serials_by_age[j + 1], &self._serials_by_age[j], n * sizeof(int64_t))
                self._slots_by_age[j], self._serials_by_age[j] = evicted.slot, evicted.serial
                self._n_supports += 1
        if self.coefficients_saved:
            memcpy(self.unscaled_coefficients, self.old_coefficients, self.old_n_slots * sizeof(double))
        self.n_evicted = 0
        # The slots of added supports. A slot that was free returns to the stack of free slots.
        for k in range(self.added.size - 1, -1, -1):
            slot = self.added.items[k]
            self.drop_features(slot)
            if slot < self.old_n_slots:
                push(&self.free_slots, slot)
        # The stack of free columns. Its lowest `fewest_free` items were never taken, so they are right. `named` lists
        # the items that were taken above them, the highest first, and the columns that were made. So they return in
        # reverse order. `free_column` pushes its column, too, and that item is cut off. Columns that were made are
        # forgotten.
        self.free_columns.size = self.fewest_free
        for k in range(self.named.size - 1, -1, -1):
            j = self.named.items[k]
            if self.names[j] is not None:
                self.free_column(j)
            self.free_columns.size = self.fewest_free
            if j < self.old_n_columns:
                self.free_columns.items[self.fewest_free] = j
                self.fewest_free += 1
                self.free_columns.size += 1
        self.n_columns = self.old_n_columns
        # Arrays that have grown may stay larger than the capacity: it is a lower bound of their size.
        self.capacity = self.old_capacity
        self.calibration.undo(); self.in_update = False
        for k in range(self.converted.size - 1, -1, -1):
            j = self.converted.items[k]
            try:
                if max(j, ~j) < self.n_columns:
                    self.make_dense(max(j, ~j), j < 0)
            except MemoryError:
                pass  # the other form has the same values, but the order of their sums may differ
        self.n_slots = self.old_n_slots
        self.coefficient_factor, self.n_added = self.old_coefficient_factor, self.old_n_added
        self.score_valid = self.kernels_valid = self.point_valid = False
        self.reader = 0  # there is no point

    def finish(self):
        """Finish the update; return an exception that a forgotten name's code raised, or None."""
        cdef int i, k, slot, n_emptied
        problem = None
        self.in_update = False
        if self.n_evicted:
            self.score_valid = self.kernels_valid = self.point_valid = False
        for i in range(self.n_evicted):
            slot = self.evicted[i].slot
            n_emptied = self.drop_features(slot)
            for k in range(n_emptied):
                DRIFT_PREFETCH(<PyObject *>self.names[<int>(self.keys[k] >> 32)])
            for k in range(n_emptied - 1, -1, -1):  # so that the lowest is reused first
                problem = self.free_column(<int>(self.keys[k] >> 32)) or problem
            push(&self.free_slots, slot)
        self.n_evicted = 0
        return problem
