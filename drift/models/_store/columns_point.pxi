# The point: the example read last, from a dict, a row or a support, by the store's columns.
#
# `read`, `read_row_at` and `read_slot` make it. Its features that some support has are `terms`, the others are
# `unknown`. Three flags say what is valid: `point_valid`, `kernels_valid`, `score_valid`. If the next example equals
# the point, all of it is kept, so that predicting and then learning an example reads and scores it once.

cdef struct CompensatedSum:
    # A compensated sum, so that |x|^2 does not depend on the order of the features.
    double total
    double lost


cdef inline void add_square(CompensatedSum *sum, double v) noexcept:
    cdef double square = v * v, total = sum.total + square, part = total - sum.total
    sum.lost += (sum.total - (total - part)) + (square - part)
    sum.total = total


cdef struct GivenFeature:
    # A feature of the example as it was given. Its name and value are borrowed: invalid after the call that read them.
    PyObject *name
    PyObject *object
    PyObject *entered  # the equal name in the vocabulary; NULL for a new feature
    Py_hash_t hash
    double value
    int32_t index  # of a row: the array's column


cdef struct Terms:
    # Columns of the store, and the point's value in each.
    int32_t *ids
    double *values


cdef struct Reading:
    # What an example becomes while its features are read one by one. It stays in registers, because only
    # `add_feature`, which is inlined, gets its address.
    CompensatedSum squared_norm
    Terms terms
    int32_t *unknown  # as `Point.unknown`
    int n_terms, n_unknown


cdef inline void add_feature(Reading *reading, int k, int j, double v) noexcept:
    """Add feature `k` of value `v`, neither 0 nor NaN, which has column `j`; -1: a new feature."""
    add_square(&reading.squared_norm, v)
    if j < 0:
        reading.unknown[reading.n_unknown] = k
        reading.n_unknown += 1
    else:
        reading.terms.ids[reading.n_terms] = j
        reading.terms.values[reading.n_terms] = v
        reading.n_terms += 1


cdef class Point(Slots):
    """The example read last, and the thread that read it."""

    # The example.
    cdef GivenFeature *given  # all features in its order; of a row, the non-zero ones
    cdef int n_given
    cdef int32_t *unknown  # indices in `given` of features that no support has
    cdef int n_unknown
    cdef bint plain  # reading it runs none of the caller's code
    cdef bint by_index  # it is a row of an array
    cdef object row_names  # of the array's columns; None for numbers
    cdef unsigned long reader  # the thread that read it; 0: there is no point
    cdef readonly int64_t n_read  # number of points read
    cdef PyObject *step_example  # the example of the current step, as long as it is the point; else NULL

    # The point: a term for each feature that a support has.
    cdef Terms terms  # in the order read
    cdef Terms sorted_terms  # by column, and divided by `divisor`
    cdef int n_terms
    cdef bint sorted_terms_valid
    cdef double read_squared_norm  # |x|^2 as read, with new features
    cdef double divisor, point_dot_factor, point_squared_norm, point_cosine_factor  # as for a slot
    cdef Window window  # of the batch, or None
    cdef int window_row  # the point's row in that batch, or -1
    cdef uint64_t *keys  # work space to sort in, like the next; also the result of `Changes.drop_features`
    cdef uint64_t *spare_keys
    cdef int point_room  # of all arrays above

    # What is valid. A change of the supports ends all three, a change of unscaled coefficients the last.
    cdef bint point_valid  # its columns are those of its features
    cdef bint kernels_valid
    cdef bint score_valid  # `point_score`

    # The previous point, to recognise it.
    cdef Terms previous_terms
    cdef int previous_n_terms
    cdef double previous_squared_norm
    cdef bint kernels_were_valid, score_was_valid

    def __cinit__(self):
        self.reserve_point(8)

    def __dealloc__(self):
        free(self.given); free(self.unknown); free(self.keys); free(self.spare_keys)
        free(self.terms.ids); free(self.sorted_terms.ids); free(self.previous_terms.ids)
        free(self.terms.values); free(self.sorted_terms.values); free(self.previous_terms.values)

    # --- threads -------------------------------------------------------------------------------
    # Another thread can run only during the caller's code, or between two calls.

    cdef int check_reader(self) except -1:
        """Raise RuntimeError if there is no point, or another thread has read it."""
        if self.reader != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE if self.reader else NO_POINT)
        return 0

    # --- reading -------------------------------------------------------------------------------

    cdef int reserve_point(self, Py_ssize_t count) except -1:
        """Make room for an example of `count` features."""
        if count <= self.point_room:
            return 0
        count = max(count, self.point_room + self.point_room // 4)
        self.given = <GivenFeature *>grown(self.given, count * sizeof(GivenFeature))
        self.unknown = <int32_t *>grown(self.unknown, count * sizeof(int32_t))
        self.keys = <uint64_t *>grown(self.keys, count * sizeof(uint64_t))
        self.spare_keys = <uint64_t *>grown(self.spare_keys, count * sizeof(uint64_t))
        self.reserve_terms(&self.terms, count)
        self.reserve_terms(&self.sorted_terms, count)
        self.reserve_terms(&self.previous_terms, count)
        self.point_room = <int>count
        return 0

    cdef int reserve_terms(self, Terms *terms, Py_ssize_t count) except -1:
        terms.ids = <int32_t *>grown(terms.ids, count * sizeof(int32_t))
        terms.values = <double *>grown(terms.values, count * sizeof(double))
        return 0

    cdef Py_ssize_t point_bytes(self) noexcept:
        """Memory from `reserve_point`."""
        cdef Py_ssize_t terms = 3 * (sizeof(int32_t) + sizeof(double)), keys = 2 * sizeof(uint64_t)
        return self.point_room * (<Py_ssize_t>(sizeof(GivenFeature) + sizeof(int32_t)) + terms + keys)

    cdef int start_point(self) except -1:
        """Save the previous point, to recognise it; there is no point until `end_point`."""
        self.guard.check()
        self.reader = 0
        self.terms, self.previous_terms = self.previous_terms, self.terms
        self.previous_n_terms = self.n_terms if self.score_valid or self.kernels_valid else -1
        self.score_was_valid, self.kernels_were_valid = self.score_valid, self.kernels_valid
        self.previous_squared_norm = self.read_squared_norm
        self.n_terms = self.n_given = self.n_unknown = 0
        self.window_row = -1
        self.plain = self.by_index = False
        self.row_names = None
        self.n_read += 1
        self.step_example = NULL
        self.score_valid = self.kernels_valid = self.point_valid = self.sorted_terms_valid = False
        return 0

    cdef bint end_point(self, int n_terms, int n_unknown, double squared_norm) noexcept:
        """Set the point's size and norm; False if the norm, or k(x, x), is too large."""
        cdef double self_kernel
        cdef int exponent
        self.n_terms, self.n_unknown = n_terms, n_unknown
        self.point_cosine_factor = self.cosine_factor_of(squared_norm)
        self.read_squared_norm = squared_norm
        if not squared_norm <= max_squared_norm:
            return False
        if self.unit_norm:
            self.divisor = sqrt(squared_norm)
            self.point_dot_factor = 1.0
            self.point_squared_norm = 1.0 if squared_norm > 0 else 0.0
        else:
            if self.kernel_kind == DRIFT_LINEAR or (self.kernel_kind == DRIFT_POLYNOMIAL and not self.divides_by_norms):
                self_kernel = drift_power(squared_norm + self.coef0, self.degree)
                if not self_kernel <= self.largest_self_kernel:
                    return False
            frexp(sqrt(squared_norm), &exponent)
            self.divisor = ldexp(1.0, exponent)
            self.point_dot_factor = self.divisor * self.point_cosine_factor
            self.point_squared_norm = squared_norm
        if self.divisor == 0:
            self.divisor = 1.0
        if (
            n_terms == self.previous_n_terms
            and squared_norm == self.previous_squared_norm
            # Equal norms: new features have the same effect, except where the RBF needs exact distances.
            and not (self.kernel_kind == DRIFT_RBF and self.gamma * self.point_squared_norm > self.exact_above)
            and memcmp(self.terms.ids, self.previous_terms.ids, n_terms * sizeof(int32_t)) == 0
            and memcmp(self.terms.values, self.previous_terms.values, n_terms * sizeof(double)) == 0
        ):
            self.score_valid, self.kernels_valid = self.score_was_valid, self.kernels_were_valid
            self.sorted_terms_valid = True  # as the previous point, which is equal
        self.point_valid = True
        self.reader = PyThread_get_thread_ident()
        return True

    cdef void sort_point(self) noexcept:
        """Sort the point by column, so that the order of its features does not matter."""
        cdef int k, largest = 0
        if self.sorted_terms_valid:
            return
        self.sorted_terms_valid = True
        for k in range(self.n_terms):
            largest = max(largest, self.terms.ids[k])
            self.keys[k] = (<uint64_t>self.terms.ids[k] << 32) | <uint64_t>k
        drift_sort(self.keys, self.spare_keys, self.n_terms, largest)
        for k in range(self.n_terms):
            self.sorted_terms.ids[k] = <int32_t>(self.keys[k] >> 32)
            self.sorted_terms.values[k] = self.terms.values[<uint32_t>self.keys[k]] / self.divisor

    cpdef read(self, x):
        """Read an example as the point."""
        cdef dict features
        cdef RowsView view
        if type(x) is dict:  # a subclass may override `items`
            features = x
            if self.is_same(features):
                self.guard.check()
                self.reader = PyThread_get_thread_ident()
                return
        elif type(x) is Row:
            view = view_of(x.rows)
            self.look_up_batch(view)
            self.read_row_at(view, x.i)
            return
        else:
            self.guard.check()
            self.reader = 0  # `as_dict` may refuse it
            features = as_dict(x)
        self.window = None  # its batch is over
        self.start_point()
        try:
            if not (self.read_plain(features) and self.look_up()):
                self.read_any(features)
        except (TypeError, ValueError, OverflowError) as problem:
            raise refusal_of(features, problem) from None
        if not self.point_valid:
            raise refusal_of(features, largest_self_kernel=self.largest_self_kernel)

    cdef bint is_same(self, dict features) except -1:
        """Whether this equals the example read last; if so, record its names.

        Fast, because most names are the vocabulary's objects.
        """
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef GivenFeature *given = self.given
        if not (self.point_valid and self.plain) or len(features) != self.n_given:
            return False
        while PyDict_Next(features, &position, &name, &value):
            if not drift_is_number(value, given.value):
                return False
            if name != given.entered:
                if not drift_is_plain(name, value):
                    return False
                if given.entered != NULL:
                    if not drift_same(given.entered, name):
                        return False
                elif drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL, True) != -1:
                    return False
            given.name = name
            given += 1
        return True

    cdef bint read_plain(self, dict features) except -1:
        """Record names, numbers and hashes; False if that may run the caller's code.

        Each pass prefetches for the next one. Names, values and vocabulary entries are cache misses, and
        an example may have eighty of each.
        """
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef int k, n = 0
        self.reserve_point(len(features))
        cdef GivenFeature *given = self.given
        while PyDict_Next(features, &position, &name, &value):
            given[n].name = name
            given[n].object = value
            DRIFT_PREFETCH(name)
            DRIFT_PREFETCH(value)
            n += 1
        for k in range(n):
            if not drift_is_plain(given[k].name, given[k].object):
                return False
        for k in range(n):
            given[k].hash = drift_hash(given[k].name)
            drift_vocabulary_prefetch(&self.vocabulary, given[k].hash)
            given[k].value = drift_number(given[k].object)
        self.n_given = n
        return True

    cdef bint look_up(self) except -1:
        """Make the point from the recorded features; False if a look-up may run the caller's code."""
        cdef Reading reading = Reading(CompensatedSum(0.0, 0.0), self.terms, self.unknown, 0, 0)
        cdef GivenFeature *given = self.given
        cdef double v
        cdef int k, j
        for k in range(self.n_given):
            v = given[k].value
            given[k].entered = NULL
            if v != v or v == 0.0:
                continue
            j = drift_vocabulary_find(&self.vocabulary, given[k].name, given[k].hash, &given[k].entered, True)
            if j == DRIFT_ASK:
                return False
            if j >= 0:
                DRIFT_PREFETCH(&self.columns[j])
            add_feature(&reading, k, j, v)
        self.plain = True
        self.end_point(reading.n_terms, reading.n_unknown, reading.squared_norm.total + reading.squared_norm.lost)
        return True

    cdef list read_any(self, dict features):
        """Make the point, running the caller's code if need be; return a list that keeps its names alive."""
        cdef list owned = list(features.items())
        cdef list looked_up = []
        cdef Reading reading
        cdef double v
        cdef int k
        cdef int64_t n_read = self.n_read
        for name, value in owned:  # the store must not change during this loop
            looked_up.append((double_of(value), hash(name), self.find(name)))
        if n_read != self.n_read:
            raise RuntimeError(IN_USE)
        self.reserve_point(len(owned))
        self.n_given = <int>len(owned)
        reading = Reading(CompensatedSum(0.0, 0.0), self.terms, self.unknown, 0, 0)
        for k in range(self.n_given):
            v = looked_up[k][0]
            self.given[k].name = <PyObject *>(<tuple>owned[k])[0]
            self.given[k].value = v
            self.given[k].hash = looked_up[k][1]
            if v == v and v != 0.0:
                add_feature(&reading, k, looked_up[k][2], v)
        self.end_point(reading.n_terms, reading.n_unknown, reading.squared_norm.total + reading.squared_norm.lost)
        return owned

    cdef int read_row_at(self, RowsView view, int i) except -1:
        """Read a row of an array after `look_up_batch`, unless it is the point already."""
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
        cdef int k, n = 0
        cdef double v
        if not (self.point_valid and self.by_index) or self.row_names is not self.batch_names:
            return False
        for k in range(view.count):
            v = view.numbers[k]
            if v != v or v == 0.0:
                continue
            if n == self.n_given or self.given[n].value != v:
                return False
            if self.given[n].index != (view.columns[k] if view.columns != NULL else k):
                return False
            n += 1
        return n == self.n_given

    cdef int read_row(self, RowsView view) except -1:
        """Read the row that the view took; FeatureError if it cannot be learnt."""
        cdef Reading reading
        cdef GivenFeature *given
        cdef double v, squared_norm
        cdef int k, j, index, n = 0
        cdef int64_t n_read
        self.start_point()
        n_read = self.n_read
        self.reserve_point(view.count)
        self.by_index, self.row_names = True, self.batch_names
        reading, given = Reading(CompensatedSum(0.0, 0.0), self.terms, self.unknown, 0, 0), self.given
        for k in range(view.count):
            v = view.numbers[k]
            if v != v or v == 0.0:
                continue
            index = view.columns[k] if view.columns != NULL else k
            j = self.column_of[index] if self.column_of != NULL else self.find(index)
            given[n].index = index
            given[n].value = v
            if j >= 0:
                DRIFT_PREFETCH(&self.columns[j])
            add_feature(&reading, n, j, v)
            n += 1
        if n_read != self.n_read:  # changed by a name's __eq__
            raise RuntimeError(IN_USE)
        self.n_given = n
        squared_norm = reading.squared_norm.total + reading.squared_norm.lost
        if not self.end_point(reading.n_terms, reading.n_unknown, squared_norm):
            raise refusal_of(
                {self.name_of(given[k].index): given[k].value for k in range(n)},
                largest_self_kernel=self.largest_self_kernel,
            )
        return 0

    cdef object name_of(self, int index):
        """Feature of a column of the row's array."""
        return index if self.row_names is None else self.row_names[index]

    def read_slot(self, int slot):
        """Read the support in a slot as the point."""
        cdef int k
        self.check_slot(slot)
        self.start_point()
        self.reserve_point(self.n_features[slot])
        self.n_terms = self.n_features[slot]
        for k in range(self.n_terms):
            DRIFT_PREFETCH(&self.columns[self.features[slot][k]])
        for k in range(self.n_terms):
            drift_prefetch_head(&self.columns[self.features[slot][k]])
        for k in range(self.n_terms):
            drift_prefetch_rest(&self.columns[self.features[slot][min(k + DRIFT_AHEAD, self.n_terms - 1)]])
            self.terms.ids[k] = self.features[slot][k]
            self.terms.values[k] = self.get(&self.columns[self.terms.ids[k]], slot)
        self.divisor = 1.0
        self.point_dot_factor = self.dot_factors[slot]
        self.point_squared_norm = self.squared_norms[slot]
        self.point_cosine_factor = self.cosine_factors[slot]
        self.read_squared_norm = -1.0  # differs from every example's
        self.point_valid = True
        self.reader = PyThread_get_thread_ident()
