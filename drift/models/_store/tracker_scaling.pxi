# How the tracker sees an example: dense features standardised, sparse rows at unit norm. One class, and so
# one file, longer than 300 lines.


cdef bint hash_plain(name, uint64_t *hashed) except -1:
    """Hash a text or int as `drift.models._tracker.slots` does; False of a text that has no UTF-8."""
    cdef Py_ssize_t size
    cdef const char *text
    if not PyUnicode_CheckExact(name):
        hashed[0] = drift_mix(<uint64_t>hash(name) + drift_step)
        return True
    try:
        text = PyUnicode_AsUTF8AndSize(name, &size)
    except UnicodeEncodeError:
        return False
    hashed[0] = drift_hash_bytes(text, size)
    return True


cdef inline int32_t hash_index(int32_t index) noexcept:
    """Hash a column of an array as the number that it is."""
    return numbered(drift_mix(<uint64_t>index + drift_step))


cdef inline int32_t numbered(uint64_t hashed) noexcept:
    """The number of a sparse feature; its first bits are the linear experts' slot."""
    return <int32_t>(hashed >> 33)


cdef class Scaling:
    """What an example is to the tracker, and the statistics that this takes.

    The store's features are numbers: of dense ones those of the names, of sparse ones hashes of them.
    """

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
    cdef double *present  # how many examples had it
    cdef double squares, next_squares
    # That example: values by name, and those before; numbers of its names in its order.
    cdef double *raw
    cdef double *last_raw
    cdef double *scaled
    cdef int32_t *order
    cdef int32_t *identity  # 0, 1, 2, ...
    cdef int32_t *columns  # of an array, that the names stand for; -1 for none
    cdef list fresh  # its names that are not known yet
    # Of a sparse one values in its order, too, hashes, and those before; its names if it was a dict.
    cdef int32_t *hashes
    cdef int32_t *last_hashes
    cdef list hashed
    cdef PyObject **read_names  # borrowed, as the values are: of no meaning after the call
    cdef PyObject **read_values
    cdef int n_read, n_last
    # Features of sparse rows that are standardised as they were before: hashes in order; means and variances, the next
    # ones, values and what they are scaled, a row of each. And those of rows that are about to turn sparse.
    cdef int32_t *common
    cdef int32_t *next_common
    cdef double *table_rows
    cdef double *next_table_rows
    cdef int n_common, n_next_common
    # The same to the linear experts: values by slot; and a table from a slot to its place there.
    cdef int32_t *slots
    cdef float *values
    cdef double *sums
    cdef int32_t *table
    cdef int n_slots, n_present, slot_room, mask, table_room
    # And to the splines, with surfaces of pairs or without.
    cdef DriftHats hats
    cdef bint pairs, next_pairs
    cdef double own  # squared norm
    cdef bint busy  # whether an example is read or learnt
    cdef bint current  # whether the store's point is that example, as the statistics have it
    cdef bint said  # and the members said what they think of it

    def __dealloc__(self):
        self.free_names()
        free(self.slots); free(self.values); free(self.sums); free(self.table)
        free(self.next_common); free(self.next_table_rows)

    cdef void free_names(self) noexcept:
        """Give back what features take as they are read."""
        free(self.vocabulary.entries); free(self.mean); free(self.variance); free(self.next_mean)
        free(self.next_variance); free(self.raw); free(self.last_raw); free(self.scaled)
        free(self.order); free(self.identity); free(self.columns); free(self.hashes); free(self.last_hashes)
        free(self.read_names); free(self.read_values); free(self.present); free(self.common); free(self.table_rows)
        memset(&self.vocabulary, 0, sizeof(self.vocabulary))
        self.mean = self.variance = self.next_mean = self.next_variance = self.present = self.table_rows = NULL
        self.common = NULL
        self.raw = self.last_raw = self.scaled = NULL
        self.order = self.identity = self.columns = self.hashes = self.last_hashes = NULL
        self.read_names = self.read_values = NULL
        self.n_names = self.name_room = self.n_read = self.n_last = self.n_common = 0

    # --- reading -------------------------------------------------------------------------------

    cdef int enter(self) except -1:
        """Keep out other threads, and the caller's own code, until `leave`.

        That code may run in hashes, comparisons and conversions of names, values and labels. The model refuses
        what it asks meanwhile, or it would change what is half read.
        """
        self.guard.check()
        if self.busy:
            raise RuntimeError(IN_USE)
        self.guard.hold()
        self.busy = True
        return 0

    cdef int leave(self) except -1:
        self.busy = False
        self.guard.release()
        return 0

    cdef int take(self, x, RowsView view, int i) except -1:
        """Make an example the store's point: a mapping, or row `i` of `Rows` and a view of them."""
        cdef bint known = self.current and self.store.current, same
        cdef dict features = None
        self.current = False
        if view is None:
            features = x if type(x) is dict else as_dict(x)
        same = self.note_hashes(x, features, view, i) if self.sparse else self.note_values(x, features, view, i)
        if not (known and same):
            self.said = False
            if self.sparse:
                self.normalise(x, features, i)
            else:
                self.standardise()
        self.current = True
        return 0

    # --- sparse rows ---------------------------------------------------------------------------

    cdef bint note_hashes(self, x, dict features, RowsView view, int i) except -1:
        """Note hashes and values in their order; return whether they are those of the example before."""
        cdef Py_ssize_t position = 0
        cdef int64_t start = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef uint64_t hashed
        cdef int k, size = 0
        cdef bint known = True
        cdef list names = self.hashed
        if view is not None:
            start = (<int64_t *>view.indptr.buf)[i]
            size = <int>((<int64_t *>view.indptr.buf)[i + 1] - start)
        else:
            size = <int>len(features)
            known = names is not None and len(names) == size == self.n_read
        self.reserve_read(max(size, 1))  # what is compared has an address
        self.raw, self.last_raw = self.last_raw, self.raw
        self.hashes, self.last_hashes = self.last_hashes, self.hashes
        self.n_read, self.n_last = 0, self.n_read
        if view is not None:
            self.hashed = None
            for k in range(size):
                self.hashes[k] = hash_index((<int32_t *>view.indices.buf)[start + k])
                self.raw[k] = (<double *>view.data.buf)[start + k]
        else:
            k = 0
            while PyDict_Next(features, &position, &name, &value):  # each of them is a cache miss
                DRIFT_PREFETCH(name)
                DRIFT_PREFETCH(<char *>name + 64)  # its text
                DRIFT_PREFETCH(value)
                self.read_names[k], self.read_values[k] = name, value
                k += 1
            try:
                for k in range(size):
                    name, value = self.read_names[k], self.read_values[k]
                    if not drift_is_plain(name, value):
                        break
                    self.raw[k] = drift_number(value)
                    if known and <PyObject *>names[k] == name:
                        self.hashes[k] = self.last_hashes[k]
                    else:
                        known = False
                        if not hash_plain(<object>name, &hashed):
                            break
                        self.hashes[k] = numbered(hashed)
                else:
                    k = size
                    if not known:
                        self.hashed = list(features)  # so that nothing else is where they are
                if k < size:
                    self.hashed = None
                    self.note_any_hashes(features, size)
            except (TypeError, ValueError, OverflowError) as problem:
                raise culprit(features, problem) from None
        self.n_read = size
        return (
            size == self.n_last
            and memcmp(self.raw, self.last_raw, size * sizeof(double)) == 0
            and memcmp(self.hashes, self.last_hashes, size * sizeof(int32_t)) == 0
        )

    cdef int note_any_hashes(self, dict features, int size) except -1:
        """Note hashes and values of so many features where the caller's own code may run."""
        cdef int k
        from drift.models._tracker.slots import hash_of

        cdef list found = [(hash_of(name), PyFloat_AsDouble(value)) for name, value in list(features.items())]
        if len(found) != size:  # there is room for
            raise RuntimeError(IN_USE)
        for k, (hashed, value) in enumerate(found):
            self.hashes[k], self.raw[k] = numbered(hashed), value
        return 0

    cdef int normalise(self, x, dict features, int i) except -1:
        """Make the values noted the store's point, and values of slots."""
        cdef int k
        cdef double norm = norm_of(self.raw, self.n_read)
        cdef double *values = self.raw
        if not norm <= 1e150:
            raise culprit(x.row(i) if features is None else features)
        self.reserve_slots_of(self.n_read)
        if self.n_common:
            values = self.scaled
            self.scale_common()
            norm = norm_of(values, self.n_read)
        memset(self.table, 0xFF, (self.mask + 1) * sizeof(int32_t))
        self.n_slots = self.n_present = 0
        drift_hats(&self.hats, NULL, NULL, NULL, NULL, 0, 0, False)
        if norm > 0.0:  # or no value has a square
            for k in range(self.n_read):
                if values[k] == values[k] and values[k] != 0.0:
                    self.n_present += 1
                    self.add_value(values, k, norm)
        for k in range(self.n_slots):
            self.values[k] = <float>self.sums[k]
        self.store.read_row(self.hashes, values, self.n_read if norm > 0.0 else 0)
        self.own = self.store.point_squared
        return 0

    cdef void scale_common(self) noexcept:
        """Standardise the features that are; one that the example lacks changes no mean.

        Their places are in `slots` until it has those of the example.
        """
        cdef int j, k, n = self.n_common
        cdef double *rows = self.table_rows
        cdef double *raw = rows + 4 * n
        memcpy(raw, rows, n * sizeof(double))
        for k in range(self.n_read):
            j = self.slots[k] = self.place_of_common(k)
            if j >= 0:
                raw[j] = self.raw[k]
        drift_standardise(
            raw, rows, rows + n, rows + 2 * n, rows + 3 * n, rows + 5 * n,
            max(RATE, 1.0 / (self.n_examples + FEW_EXAMPLES + 1)), n,
        )
        for k in range(self.n_read):
            j = self.slots[k]
            self.scaled[k] = rows[5 * n + j] if j >= 0 else self.raw[k]

    cdef int place_of_common(self, int k) noexcept:
        """Place of a feature among those that are standardised; -1 where it is none, or absent."""
        cdef int low = 0, high = self.n_common, middle
        if self.raw[k] != self.raw[k] or self.raw[k] == 0.0:
            return -1
        while low < high:
            middle = (low + high) // 2
            if self.common[middle] < self.hashes[k]:
                low = middle + 1
            else:
                high = middle
        return low if low < self.n_common and self.common[low] == self.hashes[k] else -1

    cdef void add_value(self, double *values, int k, double norm) noexcept:
        """Add a value to its slot's; in which order they come does not matter."""
        cdef int32_t slot = <int32_t>(<int64_t>self.hashes[k] * DRIFT_SLOTS >> 31)
        cdef double share = values[k] / norm
        cdef int place = slot & self.mask, other
        while self.table[place] >= 0 and self.slots[self.table[place]] != slot:
            place = (place + 1) & self.mask
        if self.table[place] < 0:
            self.table[place] = self.n_slots
            self.slots[self.n_slots] = slot
            self.sums[self.n_slots] = share
            self.n_slots += 1
            return
        place = self.table[place]
        self.sums[place] = drift_rounded(self.sums[place]) + drift_rounded(share)
        for other in range(k):
            if self.hashes[other] == self.hashes[k]:  # as of one pair of names in 2^31: to the store they are one
                values[other] += values[k]
                values[k] = 0.0
                return

    cdef int reserve_slots_of(self, int count) except -1:
        """Make room for the values of so many slots, and a table that is at most half full."""
        cdef int room = 16
        if count > self.slot_room:
            count = max(count, self.slot_room + self.slot_room // 4)
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

    cdef int reserve_read(self, int count) except -1:
        """Make room for the features of a sparse example."""
        if count > self.name_room:
            count = max(count, self.name_room + self.name_room // 4)
            self.raw = <double *>grown(self.raw, count * sizeof(double))
            self.last_raw = <double *>grown(self.last_raw, count * sizeof(double))
            self.scaled = <double *>grown(self.scaled, count * sizeof(double))
            self.hashes = <int32_t *>grown(self.hashes, count * sizeof(int32_t))
            self.last_hashes = <int32_t *>grown(self.last_hashes, count * sizeof(int32_t))
            self.read_names = <PyObject **>grown(self.read_names, count * sizeof(void *))
            self.read_values = <PyObject **>grown(self.read_values, count * sizeof(void *))
            self.name_room = count
        return 0

    # --- dense features ------------------------------------------------------------------------

    cdef bint note_values(self, x, dict features, RowsView view, int i) except -1:
        """Note the values by name; return whether they are those of the example before."""
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef int64_t start = 0
        cdef int k = 0, j, size
        cdef int32_t column
        cdef double squares = 0.0
        cdef dict unknown = {}
        if view is not None:
            start = (<int64_t *>view.indptr.buf)[i]
            size = <int>((<int64_t *>view.indptr.buf)[i + 1] - start)
        else:
            size = <int>len(features)
        self.reserve_names(self.n_names + 1, size)
        memset(self.raw, 0, self.name_room * sizeof(double))
        self.n_present = 0
        if view is not None:
            for k in range(size):
                column = (<int32_t *>view.indices.buf)[start + k]
                j = self.order[k]
                if j >= self.n_names or self.columns[j] != column:
                    j = self.number_of_name(column)
                    self.order[k] = max(j, 0)
                self.note_value(j, column if j < 0 else None, (<double *>view.data.buf)[start + k], &squares, unknown)
        else:
            try:
                while PyDict_Next(features, &position, &name, &value):
                    j = DRIFT_ASK
                    if drift_is_plain(name, value):
                        j = self.order[k]
                        if j >= self.n_names or <PyObject *>self.names[j] != name:
                            j = drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL, True)
                            self.order[k] = max(j, 0)
                    if j == DRIFT_ASK:
                        unknown = self.note_any(features, &squares)
                        break
                    k += 1
                    self.note_value(j, <object>name, drift_number(value), &squares, unknown)
            except (TypeError, ValueError, OverflowError) as problem:
                raise culprit(features, problem) from None
        if not squares <= 1e300:
            raise culprit(x.row(i) if features is None else features)
        if not unknown:
            self.fresh = None
            return memcmp(self.raw, self.last_raw, self.name_room * sizeof(double)) == 0
        self.fresh = in_order(list(unknown))[: max(DENSE_NAMES - self.n_names, 0)]
        self.reserve_names(self.n_names + <int>len(self.fresh), 0)
        for k, one in enumerate(self.fresh):
            self.raw[self.n_names + k] = unknown[one]
            self.mean[self.n_names + k] = self.variance[self.n_names + k] = 0.0
        return False

    cdef int number_of_name(self, name) except -2:
        """Number of a name, or -1."""
        return drift_vocabulary_find(&self.vocabulary, <PyObject *>name, hash(name), NULL, False)

    cdef inline int note_value(self, int j, name, double v, double *squares, dict unknown) except -1:
        """Note the value of a name's number, or of a name that has none."""
        if v != v or v == 0.0:
            return 0
        squares[0] += v * v
        self.n_present += 1
        if j >= 0:
            self.raw[j] = v
        else:
            unknown[name] = v
        return 0

    cdef dict note_any(self, dict features, double *squares):
        """Note the values where the caller's own code may run; return those of unknown names."""
        cdef dict unknown = {}
        cdef list found = [
            (self.number_of_name(name), name, PyFloat_AsDouble(value)) for name, value in list(features.items())
        ]
        memset(self.raw, 0, self.name_room * sizeof(double))
        squares[0] = 0.0
        self.n_present = 0
        for j, name, v in found:
            self.note_value(j, name, v, squares, unknown)
        return unknown

    cdef int standardise(self) except -1:
        """Make the values noted the store's point."""
        cdef int j, d = self.n_names + (0 if self.fresh is None else <int>len(self.fresh))
        cdef double n = self.n_examples + 1, scale
        self.next_squares = self.squares + drift_standardise(
            self.raw, self.mean, self.variance, self.next_mean, self.next_variance, self.scaled, max(RATE, 1.0 / n), d
        )
        self.next_pairs = self.pairs and not (self.n_names <= DRIFT_PAIRED < min(d, self.n_present))
        drift_hats(
            &self.hats, self.scaled, self.raw, self.next_mean, self.next_variance, d, self.n_names, self.next_pairs
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
        self.present = <double *>widened(self.present, before, room)
        self.raw = <double *>widened(self.raw, before, room)
        self.last_raw = <double *>widened(self.last_raw, before, room)
        self.scaled = <double *>widened(self.scaled, before, room)
        self.order = <int32_t *>grown(self.order, room * sizeof(int32_t))
        self.identity = <int32_t *>grown(self.identity, room * sizeof(int32_t))
        self.columns = <int32_t *>grown(self.columns, room * sizeof(int32_t))
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
        cdef double most = SPARSE_SHARE * (self.n_examples + 1)  # values of a name, on average
        if d <= MANY_NAMES:
            most = min(most, SPARSE_VALUES)
        return d == DENSE_NAMES or self.n_values + self.n_present < most * d

    cdef int choose_common(self) except -1:
        """Find what goes on to be standardised where rows turn sparse: what many of not too few examples had."""
        from drift.models._tracker.slots import hash_of

        cdef int j, k, n
        cdef double least = COMMON_SHARE * (self.n_examples + 1)
        cdef dict found = {}
        if self.n_examples + 1 >= FEW_EXAMPLES:
            for j, name in enumerate(self.names if self.fresh is None else self.names + self.fresh):
                if self.present[j] + (self.last_raw[j] != 0.0) >= least:
                    found[numbered(<uint64_t>hash_of(name))] = j
        n = self.n_next_common = <int>len(found)
        self.next_common = <int32_t *>grown(self.next_common, max(n, 1) * sizeof(int32_t))
        self.next_table_rows = <double *>grown(self.next_table_rows, max(6 * n, 1) * sizeof(double))
        for k, number in enumerate(sorted(found)):
            j = found[number]
            self.next_common[k] = number
            self.next_table_rows[k], self.next_table_rows[n + k] = self.next_mean[j], self.next_variance[j]
        return 0

    cdef int reserve_common(self, numbers) except -1:
        """Make room for what is standardised of sparse rows, by these hashes."""
        cdef int k
        self.n_common = <int>len(numbers)
        self.common = <int32_t *>grown(NULL, max(self.n_common, 1) * sizeof(int32_t))
        self.table_rows = <double *>grown(NULL, max(6 * self.n_common, 1) * sizeof(double))
        for k in range(self.n_common):
            self.common[k] = numbers[k]
        return 0

    cdef void take_common(self) noexcept:
        free(self.common); free(self.table_rows)
        self.common, self.table_rows, self.n_common = self.next_common, self.next_table_rows, self.n_next_common
        self.next_common, self.next_table_rows = NULL, NULL

    cdef int enter_names(self) except -1:
        """Give the new names of the example their numbers; `keep_scale` counts them."""
        cdef int k
        for k, name in enumerate(self.fresh):
            self.columns[self.n_names + k] = <int32_t>index_below(name, 1 << 31)
            if drift_vocabulary_enter(&self.vocabulary, <PyObject *>name, hash(name), self.n_names + k):
                raise MemoryError("the tracker cannot grow")
        return 0

    cdef void leave_names(self) noexcept:
        """Take that back."""
        for name in self.fresh:
            drift_vocabulary_drop(&self.vocabulary, <PyObject *>name)

    cdef void keep_scale(self, list names) noexcept:
        """Keep what the example read last tells; `names` are then known."""
        cdef int j, n = self.n_common
        self.n_examples += 1
        self.n_values += self.n_present
        if n:
            memcpy(self.table_rows, self.table_rows + 2 * n, 2 * n * sizeof(double))
        if not self.sparse:
            self.mean, self.next_mean = self.next_mean, self.mean
            self.variance, self.next_variance = self.next_variance, self.variance
            self.squares = self.next_squares
            self.names = names
            self.n_names = <int>len(names)
            for j in range(self.n_names):
                self.present[j] += self.last_raw[j] != 0.0


cdef double norm_of(const double *values, int count) noexcept:
    """Norm of values but NaN."""
    cdef int k
    cdef Sum squares = Sum(0.0, 0.0)
    for k in range(count):
        if values[k] == values[k]:
            add_square(&squares, values[k])
    return sqrt(squares.total + squares.lost)


cdef void *widened(void *block, int before, int after) except NULL:
    """Numbers behind others, 0 at first."""
    cdef double *wide = <double *>grown(block, after * sizeof(double))
    memset(wide + before, 0, (after - before) * sizeof(double))
    return wide
