# How the tracker sees an example: dense features standardised, sparse rows at unit norm.


cdef uint64_t hash_name(name) except? 0:
    """Hash a name as `drift.models._tracker.slots` does."""
    cdef Py_ssize_t size
    cdef const char *text
    if PyUnicode_CheckExact(name):
        try:
            text = PyUnicode_AsUTF8AndSize(name, &size)
            return drift_hash_bytes(text, size)
        except UnicodeEncodeError:
            pass
    elif PyLong_CheckExact(name):
        return drift_mix(<uint64_t>hash(name) + drift_step)
    from drift.models._tracker.slots import hash_of

    return hash_of(name)


cdef class Scaling:
    """What an example is to the tracker, and the statistics that this takes."""

    cdef readonly Guard guard
    cdef ColumnStore store
    cdef bint auto, sparse
    cdef int64_t n_examples, n_values
    # Dense features: their names by number, running means and variances, the sum of squared norms,
    # and all these as they would be behind the example read last.
    cdef list names
    cdef DriftVocabulary vocabulary
    cdef int n_names, name_room
    cdef double *mean
    cdef double *variance
    cdef double *next_mean
    cdef double *next_variance
    cdef double squares, next_squares
    # That example: values by name, and as they were; numbers of its names in its order.
    cdef double *raw
    cdef double *last_raw
    cdef double *scaled
    cdef int32_t *order
    cdef int32_t *identity  # 0, 1, 2, ...
    cdef list fresh  # its names that are not known yet
    # The same to the linear experts: values by slot; and a table from a slot to its place there.
    cdef int32_t *slots
    cdef float *values
    cdef double *sums
    cdef int32_t *table
    cdef int n_slots, n_present, slot_room, mask, table_room
    cdef double own  # squared norm
    cdef long serial  # the store's number of the point that is the example
    cdef bint current

    def __dealloc__(self):
        self.free_names()
        free(self.slots); free(self.values); free(self.sums); free(self.table)

    cdef void free_names(self) noexcept:
        """Give back what dense features take."""
        free(self.vocabulary.entries); free(self.mean); free(self.variance); free(self.next_mean)
        free(self.next_variance); free(self.raw); free(self.last_raw); free(self.scaled)
        free(self.order); free(self.identity)
        memset(&self.vocabulary, 0, sizeof(self.vocabulary))
        self.mean = self.variance = self.next_mean = self.next_variance = NULL
        self.raw = self.last_raw = self.scaled = NULL
        self.order = self.identity = NULL
        self.n_names = self.name_room = 0

    cdef bint take(self, x) except -1:
        """Make an example the store's point; return whether it is another one than before."""
        cdef bint known = self.current and self.store.current and self.serial == self.store.serial
        self.current = False
        if self.sparse:
            self.store.read(x)
            known = known and self.serial == self.store.serial
            if not known:
                self.hash_point(x)
        else:
            known = self.note_values(x if type(x) is dict else as_dict(x)) and known
            if not known:
                self.standardise()
        self.serial = self.store.serial
        self.current = True
        return not known

    # --- sparse rows ---------------------------------------------------------------------------

    cdef int hash_point(self, x) except -1:
        """Make the store's point the values of slots."""
        cdef ColumnStore store = self.store
        cdef int k
        cdef double value
        cdef list names = None
        if not store.plain and not store.by_index:
            names = list(x if type(x) is dict else as_dict(x))
        self.reserve_slots_of(store.read_size)
        memset(self.table, 0xFF, (self.mask + 1) * sizeof(int32_t))
        self.n_slots = self.n_present = 0
        for k in range(store.read_size):
            value = store.numbers[k]
            if value != value or value == 0.0:
                continue
            if store.by_index:
                self.add_value(drift_mix(<uint64_t>store.indices[k] + drift_step), value)
            elif names is None:
                self.add_value(hash_name(<object>store.read_names[k]), value)
            else:
                self.add_value(hash_name(names[k]), value)
        for k in range(self.n_slots):
            self.values[k] = <float>self.sums[k]
        self.own = store.point_squared
        return 0

    cdef void add_value(self, uint64_t hashed, double value) noexcept:
        """Add a value to those of its slot, so that the order of the names does not matter."""
        cdef int32_t slot = <int32_t>(hashed >> (64 - DRIFT_SLOT_BITS))
        cdef int place = slot & self.mask
        value /= self.store.divisor
        self.n_present += 1
        while self.table[place] >= 0 and self.slots[self.table[place]] != slot:
            place = (place + 1) & self.mask
        if self.table[place] < 0:
            self.table[place] = self.n_slots
            self.slots[self.n_slots] = slot
            self.sums[self.n_slots] = value
            self.n_slots += 1
        else:
            place = self.table[place]
            self.sums[place] = drift_rounded(self.sums[place]) + drift_rounded(value)

    cdef int reserve_slots_of(self, int count) except -1:
        """Make room for the values of so many slots, and a table that is at most half full."""
        cdef int room = 16
        if count > self.slot_room:
            count = max(count, 2 * self.slot_room)
            self.slots = <int32_t *>grown(self.slots, count * sizeof(int32_t))
            self.values = <float *>grown(self.values, count * sizeof(float))
            self.sums = <double *>grown(self.sums, count * sizeof(double))
            self.slot_room = count
        while room < 2 * count:
            room *= 2
        if room > self.table_room:
            self.table = <int32_t *>grown(self.table, room * sizeof(int32_t))
            self.table_room = room
        self.mask = room - 1
        return 0

    # --- dense features ------------------------------------------------------------------------

    cdef bint note_values(self, dict x) except -1:
        """Note the values by name; return whether they are those of the example before."""
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef int k = 0, j
        cdef double v, squares = 0.0
        cdef dict unknown = None
        self.reserve_names(self.n_names + 1, <int>len(x))
        memset(self.raw, 0, self.name_room * sizeof(double))
        self.n_present = 0
        try:
            while PyDict_Next(x, &position, &name, &value):
                if not drift_is_plain(name, value):
                    unknown = self.note_any(x, &squares)
                    break
                v = drift_number(value)
                j = self.order[k]
                if j >= self.n_names or <PyObject *>self.names[j] != name:
                    j = drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL)
                    self.order[k] = max(j, 0)
                k += 1
                if v != v or v == 0.0:
                    continue
                squares += v * v
                self.n_present += 1
                if j >= 0:
                    self.raw[j] = v
                elif unknown is None:
                    unknown = {<object>name: v}
                else:
                    unknown[<object>name] = v
        except (TypeError, ValueError, OverflowError) as problem:
            raise culprit(x, problem) from None
        if not squares <= 1e300:
            raise culprit(x)
        if unknown is None:
            self.fresh = None
            return memcmp(self.raw, self.last_raw, self.name_room * sizeof(double)) == 0
        self.fresh = in_order(list(unknown))[: max(DENSE_NAMES - self.n_names, 0)]
        self.reserve_names(self.n_names + <int>len(self.fresh), 0)
        for k, one in enumerate(self.fresh):
            self.raw[self.n_names + k] = unknown[one]
            self.mean[self.n_names + k] = self.variance[self.n_names + k] = 0.0
        return False

    cdef dict note_any(self, dict x, double *squares):
        """Note the values where the caller's own code may run; return those of unknown names."""
        cdef long serial = self.store.serial
        cdef list found = []
        cdef dict unknown = {}
        for name, value in list(x.items()):
            v = PyFloat_AsDouble(value)
            found.append((name, v, drift_vocabulary_find(&self.vocabulary, <PyObject *>name, hash(name), NULL)))
        if serial != self.store.serial:
            raise RuntimeError(IN_USE)
        memset(self.raw, 0, self.name_room * sizeof(double))
        squares[0] = 0.0
        self.n_present = 0
        for name, v, j in found:
            if v != v or v == 0.0:
                continue
            squares[0] += v * v
            self.n_present += 1
            if j < 0:
                unknown[name] = v
            else:
                self.raw[<int>j] = v
        return unknown if unknown else None

    cdef int standardise(self) except -1:
        """Make the values noted the store's point."""
        cdef int j, d = self.n_names + (0 if self.fresh is None else <int>len(self.fresh))
        cdef double n = self.n_examples + 1, scale
        self.next_squares = self.squares + drift_standardise(
            self.raw, self.mean, self.variance, self.next_mean, self.next_variance, self.scaled, max(RATE, 1.0 / n), d
        )
        scale = sqrt(self.next_squares / n + LEAST)
        self.own = 0.0
        for j in range(d):
            self.values[j] = <float>(self.scaled[j] / scale)
            self.scaled[j] = self.values[j]
            self.own += self.scaled[j] * self.scaled[j]
            self.slots[j] = j
        self.n_slots = d
        self.raw, self.last_raw = self.last_raw, self.raw
        self.store.index(self.name_room)
        self.store.read_row(self.identity, self.scaled, d)
        return 0

    cdef int reserve_names(self, int count, int size) except -1:
        """Make room for so many names, and to note the order of `size` of them."""
        cdef int before = self.name_room, room, k
        self.reserve_slots_of(max(count, size))
        if max(count, size) <= before:
            return 0
        room = max(2 * before, max(count, size) + 8)
        self.mean = <double *>widened(self.mean, before, room)
        self.variance = <double *>widened(self.variance, before, room)
        self.next_mean = <double *>widened(self.next_mean, before, room)
        self.next_variance = <double *>widened(self.next_variance, before, room)
        self.raw = <double *>widened(self.raw, before, room)
        self.last_raw = <double *>widened(self.last_raw, before, room)
        self.scaled = <double *>widened(self.scaled, before, room)
        self.order = <int32_t *>grown(self.order, room * sizeof(int32_t))
        self.identity = <int32_t *>grown(self.identity, room * sizeof(int32_t))
        memset(self.order + before, 0, (room - before) * sizeof(int32_t))
        for k in range(before, room):
            self.identity[k] = k
        self.name_room = room
        return 0

    cdef bint turns(self) noexcept:
        """Whether rows are sparse from the next one on."""
        cdef int64_t d = self.n_names + (0 if self.fresh is None else len(self.fresh))
        if self.sparse or not self.auto or d <= FEW_NAMES:
            return False
        return d == DENSE_NAMES or self.n_values + self.n_present < SPARSE_SHARE * d * (self.n_examples + 1)

    cdef int enter_names(self) except -1:
        """Give the new names of the example their numbers; `keep_scale` counts them."""
        cdef int k
        for k, name in enumerate(self.fresh):
            if drift_vocabulary_enter(&self.vocabulary, <PyObject *>name, hash(name), self.n_names + k):
                raise MemoryError("the tracker cannot grow")
        return 0

    cdef void leave_names(self) noexcept:
        """Take that back."""
        for name in self.fresh:
            drift_vocabulary_drop(&self.vocabulary, <PyObject *>name)

    cdef void keep_scale(self, list names) noexcept:
        """Keep what the example read last tells; `names` are then known."""
        self.n_examples += 1
        self.n_values += self.n_present
        if not self.sparse:
            self.mean, self.next_mean = self.next_mean, self.mean
            self.variance, self.next_variance = self.next_variance, self.variance
            self.squares = self.next_squares
            self.names = names
            self.n_names = <int>len(names)


cdef void *widened(void *block, int before, int after) except NULL:
    """Numbers behind others, 0 at first."""
    cdef double *wide = <double *>grown(block, after * sizeof(double))
    memset(wide + before, 0, (after - before) * sizeof(double))
    return wide
