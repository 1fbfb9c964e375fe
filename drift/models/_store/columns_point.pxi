# The point: the example read last, from a dict, a row or a support, by the store's columns.

cdef struct Sum:
    # A compensated sum, so that |x|^2 does not depend on the order of the features.
    double total
    double lost


cdef inline void add_square(Sum *sum, double v) noexcept:
    cdef double square = v * v, total = sum.total + square, part = total - sum.total
    sum.lost += (sum.total - (total - part)) + (square - part)
    sum.total = total


cdef class Point(Slots):
    """The example read last, and the thread that read it."""

    # The example read last: all features in its order; of a row, the non-zero ones.
    cdef PyObject **read_names  # borrowed, like the values: invalid after the call
    cdef PyObject **read_values
    cdef PyObject **entered_names  # the vocabulary's; NULL for a new feature
    cdef double *numbers
    cdef int32_t *indices
    cdef Py_hash_t *hashes
    cdef int32_t *unknown  # positions of new features, which no support has
    cdef int read_size, n_unknown
    cdef bint plain, by_index  # whether reading it runs none of the caller's code; whether it is a row
    # The point: columns and values in the order read, and the same of the previous point.
    cdef int32_t *ids
    cdef int32_t *last_ids
    cdef double *values
    cdef double *last_values
    cdef int32_t *sorted_ids
    cdef double *sorted_values
    cdef uint64_t *keys
    cdef uint64_t *spare_keys
    cdef int count, last_count, point_room
    cdef double point_norm2, last_norm2  # |x|^2 as read, with new features
    cdef readonly long serial  # number of points read
    cdef object row_names  # of the columns of the row's array, or None
    cdef double divisor, point_scale, point_squared, point_share
    cdef bint ordered  # whether sorted_ids are valid
    cdef int window_row  # its number in the window's batch, or -1
    # What is valid: `current`, the point; `filled`, its kernel values; `scored`, its score. A change of the
    # supports ends all three, one of the coefficients the last. Then the same of the previous point.
    cdef bint current, filled, scored
    cdef bint was_scored, was_filled
    cdef Window window  # of the current batch, or None
    cdef unsigned long reader  # the thread

    def __cinit__(self):
        self.reserve_point(8)

    def __dealloc__(self):
        free(self.entered_names); free(self.read_names); free(self.read_values); free(self.hashes)
        free(self.numbers); free(self.indices); free(self.unknown)
        free(self.ids); free(self.last_ids); free(self.values); free(self.last_values)
        free(self.sorted_ids); free(self.sorted_values); free(self.keys); free(self.spare_keys)

    # --- threads -------------------------------------------------------------------------------
    # Another thread can run only during the caller's code, or between two calls.

    cdef int check_reader(self) except -1:
        if self.reader != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    # --- reading -------------------------------------------------------------------------------

    cdef int reserve_point(self, Py_ssize_t count) except -1:
        if count <= self.point_room:
            return 0
        count = max(count, self.point_room + self.point_room // 4)
        self.read_names = <PyObject **>grown(self.read_names, count * sizeof(void *))
        self.entered_names = <PyObject **>grown(self.entered_names, count * sizeof(void *))
        self.read_values = <PyObject **>grown(self.read_values, count * sizeof(void *))
        self.hashes = <Py_hash_t *>grown(self.hashes, count * sizeof(Py_hash_t))
        self.numbers = <double *>grown(self.numbers, count * sizeof(double))
        self.indices = <int32_t *>grown(self.indices, count * sizeof(int32_t))
        self.unknown = <int32_t *>grown(self.unknown, count * sizeof(int32_t))
        self.ids = <int32_t *>grown(self.ids, count * sizeof(int32_t))
        self.last_ids = <int32_t *>grown(self.last_ids, count * sizeof(int32_t))
        self.sorted_ids = <int32_t *>grown(self.sorted_ids, count * sizeof(int32_t))
        self.values = <double *>grown(self.values, count * sizeof(double))
        self.last_values = <double *>grown(self.last_values, count * sizeof(double))
        self.sorted_values = <double *>grown(self.sorted_values, count * sizeof(double))
        self.keys = <uint64_t *>grown(self.keys, count * sizeof(uint64_t))
        self.spare_keys = <uint64_t *>grown(self.spare_keys, count * sizeof(uint64_t))
        self.point_room = <int>count
        return 0

    cdef int start_point(self) except -1:
        """Save the previous point, to recognise it; there is no point until `end_point`."""
        self.guard.check()
        self.reader = PyThread_get_thread_ident()
        self.ids, self.last_ids = self.last_ids, self.ids
        self.values, self.last_values = self.last_values, self.values
        self.last_count = self.count if self.scored or self.filled else -1
        self.was_scored, self.was_filled = self.scored, self.filled
        self.last_norm2 = self.point_norm2
        self.count = self.read_size = self.n_unknown = 0
        self.window_row = -1
        self.plain = self.by_index = False
        self.row_names = None
        self.serial += 1
        self.scored = self.filled = self.current = self.ordered = False
        return 0

    cdef bint end_point(self, double norm2) noexcept:
        """Set the point's norm; False if it, or k(x, x), is too large."""
        cdef double self_kernel
        cdef int exponent, count = self.count
        self.point_share = self.share_of(norm2)
        self.point_norm2 = norm2
        if not norm2 <= largest_norm2:
            return False
        if self.normalize:
            self.divisor = sqrt(norm2)
            self.point_scale = 1.0
            self.point_squared = 1.0 if norm2 > 0 else 0.0
        else:
            if self.kernel_kind == DRIFT_LINEAR or (self.kernel_kind == DRIFT_POLYNOMIAL and not self.cosine):
                self_kernel = drift_power(norm2 + self.coef0, self.degree)
                if not self_kernel <= self.most:
                    return False
            frexp(sqrt(norm2), &exponent)
            self.divisor = ldexp(1.0, exponent)
            self.point_scale = self.divisor * self.point_share
            self.point_squared = norm2
        if self.divisor == 0:
            self.divisor = 1.0
        if (
            count == self.last_count
            and norm2 == self.last_norm2
            # Equal norms show that new features are alike. An RBF that needs exact distances needs more.
            and not (self.kernel_kind == DRIFT_RBF and self.gamma * self.point_squared > self.far)
            and memcmp(self.ids, self.last_ids, count * sizeof(int32_t)) == 0
            and memcmp(self.values, self.last_values, count * sizeof(double)) == 0
        ):
            self.scored, self.filled = self.was_scored, self.was_filled
            self.ordered = True  # as the previous point, which is equal
        self.current = True
        return True

    cdef void sort_point(self) noexcept:
        """Sort the point by column, so that the order of its features does not matter."""
        cdef int k, largest = 0
        if self.ordered:
            return
        self.ordered = True
        for k in range(self.count):
            largest = max(largest, self.ids[k])
            self.keys[k] = (<uint64_t>self.ids[k] << 32) | <uint64_t>k
        drift_sort(self.keys, self.spare_keys, self.count, largest)
        for k in range(self.count):
            self.sorted_ids[k] = <int32_t>(self.keys[k] >> 32)
            self.sorted_values[k] = self.values[<uint32_t>self.keys[k]] / self.divisor

    cpdef read(self, x):
        """Read an example as the point of `score` and `self_kernel`.

        Raises
        ------
        FeatureError, FeatureTypeError
            A value is no finite number. The supports do not change.
        """
        cdef dict features
        if type(x) is dict:  # a subclass may override `items`
            features = x
            if self.is_same(features):
                self.guard.check()
                self.reader = PyThread_get_thread_ident()
                return
        elif type(x) is Row:
            self.index(x.rows)
            self.read_row_at(view_of(x.rows), x.i)
            return
        else:
            features = as_dict(x)
        self.window = None  # its batch is over
        self.start_point()
        try:
            if not (self.read_plain(features) and self.look_up()):
                self.read_any(features)
        except (TypeError, ValueError, OverflowError) as problem:
            raise culprit(features, problem) from None
        if not self.current:
            raise culprit(features, most=self.most)

    cdef bint is_same(self, dict features) except -1:
        """Whether this equals the example read last; if so, record its names.

        Fast, because most names are the vocabulary's objects.
        """
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef PyObject **last_names = self.entered_names
        cdef PyObject **names = self.read_names
        cdef double *numbers = self.numbers
        cdef int k = 0
        if not (self.current and self.plain) or len(features) != self.read_size:
            return False
        while PyDict_Next(features, &position, &name, &value):
            if not drift_is_number(value, numbers[k]):
                return False
            if name != last_names[k]:
                if not drift_is_plain(name, value):
                    return False
                if last_names[k] != NULL:
                    if not drift_same(last_names[k], name):
                        return False
                elif drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL, True) != -1:
                    return False
            names[k] = name
            k += 1
        return True

    cdef bint read_plain(self, dict features) except -1:
        """Record names, numbers and hashes; False if that may run the caller's code.

        Each pass prefetches for the next one: a name's hash, a value and a vocabulary entry are cache
        misses, some eighty of each.
        """
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef int k, size = 0
        self.reserve_point(len(features))
        cdef PyObject **names = self.read_names
        cdef PyObject **values = self.read_values
        while PyDict_Next(features, &position, &name, &value):
            names[size] = name
            values[size] = value
            DRIFT_PREFETCH(name)
            DRIFT_PREFETCH(value)
            size += 1
        for k in range(size):
            if not drift_is_plain(names[k], values[k]):
                return False
        for k in range(size):
            self.hashes[k] = drift_hash(names[k])
            drift_vocabulary_prefetch(&self.vocabulary, self.hashes[k])
            self.numbers[k] = drift_number(values[k])
        self.read_size = size
        return True

    cdef bint look_up(self) except -1:
        """Make the point from the recorded features; False if a look-up may run the caller's code."""
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef double v
        cdef int k, j, count = 0, n_unknown = 0
        for k in range(self.read_size):
            v = self.numbers[k]
            self.entered_names[k] = NULL
            if v != v or v == 0.0:
                continue
            add_square(&norm2, v)
            j = drift_vocabulary_find(&self.vocabulary, self.read_names[k], self.hashes[k], &self.entered_names[k], True)
            if j == DRIFT_ASK:
                return False
            if j < 0:
                self.unknown[n_unknown] = k
                n_unknown += 1
            else:
                DRIFT_PREFETCH(&self.columns[j])
                self.ids[count] = j
                self.values[count] = v
                count += 1
        self.count, self.n_unknown = count, n_unknown
        self.plain = True
        self.end_point(norm2.total + norm2.lost)
        return True

    cdef list read_any(self, dict features):
        """Make the point, running the caller's code if need be; return a list that keeps its names alive."""
        cdef list kept = list(features.items())
        cdef list features_read = []
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef int k, j
        cdef long serial = self.serial
        for name, value in kept:  # the store must not change during this loop
            number = PyFloat_AsDouble(value)
            features_read.append((name, number, hash(name), self.find(name)))
        if serial != self.serial:
            raise RuntimeError(IN_USE)
        self.reserve_point(len(kept))
        self.read_size = <int>len(kept)
        for k in range(self.read_size):
            self.read_names[k] = <PyObject *>(<tuple>kept[k])[0]
            self.numbers[k] = features_read[k][1]
            self.hashes[k] = features_read[k][2]
        for k in range(self.read_size):
            if self.numbers[k] != self.numbers[k] or self.numbers[k] == 0.0:
                continue
            add_square(&norm2, self.numbers[k])
            j = features_read[k][3]
            if j < 0:
                self.unknown[self.n_unknown] = k
                self.n_unknown += 1
            else:
                self.ids[self.count] = j
                self.values[self.count] = self.numbers[k]
                self.count += 1
        self.end_point(norm2.total + norm2.lost)
        return kept

    cdef int read_row_at(self, RowsView view, int i) except -1:
        """Read a row of an array after `index`, unless it is the point already."""
        view.take(i)
        if self.is_same_row(view):
            self.guard.check()
            self.reader = PyThread_get_thread_ident()
        else:
            self.read_row(view)
        self.window_row = i if self.window is not None and self.window.view is view else -1
        return 0

    cdef bint is_same_row(self, RowsView view) noexcept:
        """Whether the row that the view took equals the example read last."""
        cdef int k, read = 0
        cdef double v
        if not (self.current and self.by_index) or self.row_names is not self.header:
            return False
        for k in range(view.count):
            v = view.numbers[k]
            if v != v or v == 0.0:
                continue
            if read == self.read_size or self.numbers[read] != v:
                return False
            if self.indices[read] != (view.columns[k] if view.columns != NULL else k):
                return False
            read += 1
        return read == self.read_size

    cdef int read_row(self, RowsView view) except -1:
        """Read the row that the view took; -1 with FeatureError if it cannot be learnt."""
        cdef double v
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef int k, j, index, read = 0, count = 0, n_unknown = 0
        cdef long serial
        self.start_point()
        serial = self.serial
        self.reserve_point(view.count)
        self.by_index, self.row_names = True, self.header
        for k in range(view.count):
            v = view.numbers[k]
            if v != v or v == 0.0:
                continue
            add_square(&norm2, v)
            index = view.columns[k] if view.columns != NULL else k
            j = self.column_of[index] if self.column_of != NULL else self.find(index)
            self.indices[read] = index
            self.numbers[read] = v
            if j < 0:
                self.unknown[n_unknown] = read
                n_unknown += 1
            else:
                DRIFT_PREFETCH(&self.columns[j])
                self.ids[count] = j
                self.values[count] = v
                count += 1
            read += 1
        if serial != self.serial:  # changed by a name's __eq__
            raise RuntimeError(IN_USE)
        self.read_size, self.count, self.n_unknown = read, count, n_unknown
        if not self.end_point(norm2.total + norm2.lost):
            raise culprit({self.name_of(self.indices[k]): self.numbers[k] for k in range(read)}, most=self.most)
        return 0

    cdef object name_of(self, int index):
        """Feature of a column of the row's array."""
        return index if self.row_names is None else self.row_names[index]

    def read_support(self, int slot):
        """Read a support as the point."""
        cdef int k
        self.start_point()
        self.reserve_point(self.row_size[slot])
        self.count = self.row_size[slot]
        for k in range(self.count):
            DRIFT_PREFETCH(&self.columns[self.rows[slot][k]])
        for k in range(self.count):
            drift_prefetch_head(&self.columns[self.rows[slot][k]])
        for k in range(self.count):
            drift_prefetch_rest(&self.columns[self.rows[slot][min(k + 4, self.count - 1)]])
            self.ids[k] = self.rows[slot][k]
            self.values[k] = self.get(&self.columns[self.ids[k]], slot)
        self.divisor = 1.0
        self.point_scale = self.scale[slot]
        self.point_squared = self.squared[slot]
        self.point_share = self.share[slot]
        self.point_norm2 = -1.0  # differs from every example's
