# How the tracker reads an example: two scales with one interface.
#
# `Scale.read` reads an example into the tracker's point and changes nothing that is stored. `add_names` numbers its new
# names and may fail. `learn` updates the statistics and cannot fail.

#: Largest sum of squares of an example.
cdef double LARGEST = 1e300
#: No names. Lists of names are replaced, never changed.
cdef list NONE = []
cdef Py_ssize_t indexed_width = INDEXED_WIDTH


cdef class Scale:
    """Reader of examples.

    Parameters
    ----------
    state
        The tracker's memory.
    """

    cdef State state
    cdef readonly list names, new_names
    cdef list next_names  # after the example
    cdef bint current
    cdef object header  # names of the columns of the rows that are read, None for numbers

    def __init__(self, State state):
        self.state = state
        self.names = self.next_names = self.new_names = NONE
        self.current = False

    cdef int read(self, features, RowsView view, int i) except -1:
        """Read a mapping, or row `i`, into the point. Returns whether the point was current."""
        cdef bint current = self.current, same
        self.current = False
        if view is None and type(features) is not dict:
            features = as_dict(features)
        same = self.read_values(features, view, i)
        if not (current and same):
            self.make_point()
            current = False
        self.current = True
        return current

    cdef bint read_values(self, dict features, RowsView view, int i) except -1:
        """Read the values; return whether the last example had the same."""

    cdef object refusal(self, dict features, RowsView view, int i):
        """The error that an example is too large."""
        x = view.row(i) if features is None else features
        return refusal_of({name: value for name, value in x.items() if value is not None})

    cdef int make_point(self) except -1:
        """Scale the values into the point."""

    cdef int add_names(self) except -1:
        """Number the example's new names; a failure changes nothing."""

    cdef void drop_names(self) noexcept:
        """Undo `add_names`."""

    cdef uint64_t key(self) except? 0:
        """Key of the example's ticket: a sum over its values, whatever their order."""

    cdef void update_context(self) noexcept:
        """Update the running means by an example that is predicted."""

    cdef void use_context(self, const float *back, int n) noexcept:
        """Replace the deviations from the running means by a ticket's."""

    cdef void learn(self, bint context_updated) noexcept:
        """Update the statistics, and the running means unless `update_context` did."""


cdef class Dense(Scale):
    """Features standardised by their running means and deviations.

    Parameters
    ----------
    state
        The tracker's memory.
    names
        Names, in the order of their numbers.
    """

    cdef DriftVocabulary vocabulary
    cdef dict new_values, last_new_values  # values of new names, of this example and of the last one
    # Nonzero values of the example; names that had one before; names that get their first.
    cdef int n_present, n_active, n_new
    cdef double squares, context_squares  # sums of squares of the example that was read
    # Of the rows that are read: places of the header's names, and the number of the name of each column, or -1.
    cdef dict places
    cdef int32_t *numbers
    cdef Py_ssize_t width
    cdef int n_entered  # the names whose numbers are among these

    def __init__(self, State state, list names):
        super().__init__(state)
        self.new_names = names
        self.reserve(<int>len(names))
        self.add_names()
        self.names, self.new_names = self.next_names, NONE
        self.n_active = sum([state.t.features[j].present > 0.0 for j in range(len(names))])

    def __dealloc__(self):
        free(self.vocabulary.entries); free(self.numbers)

    def __sizeof__(self):
        return object.__sizeof__(self) + 16 * (self.vocabulary.mask + 1) + self.width * sizeof(int32_t)

    cdef int reserve(self, int n) except -1:
        """Make room for so many names."""
        cdef DriftTracker *t = &self.state.t
        if n > t.inputs or n > t.names or n + 1 > t.cells:
            if t.names:  # most streams have no others than the first example's
                n += n // 4
            self.state.reserve(sizes_of(n, sparse=False, trees=t.trees) | {"inputs": n})
        return 0

    cdef bint read_values(self, dict features, RowsView view, int i) except -1:
        cdef DriftTracker *t = &self.state.t
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef double squares = 0.0, v
        cdef int j, k = 0, n = <int>len(self.names)
        self.reserve(max(n, 1))
        self.new_values = None
        for k in range(n):
            t.raw[k] = DRIFT_ABSENT
        if features is None and view.width <= indexed_width:
            self.read_row(view, i)
            return self.end_read(None, view, i)
        if features is None:
            features = view.row(i)
        try:
            while PyDict_Next(features, &position, &name, &value):
                if value == Py_None and drift_is_plain_name(name):
                    v = NAN
                elif drift_is_plain(name, value):
                    v = drift_number(value)
                else:
                    self.read_any(features)
                    break
                j = drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL, True)
                if j == DRIFT_ASK:
                    self.read_any(features)
                    break
                if j >= 0:
                    t.raw[j] = v if v != DRIFT_ABSENT else INFINITY  # which is refused
                elif v == v:
                    if self.new_values is None:
                        self.new_values = {}
                    self.new_values[<object>name] = v
        except (TypeError, ValueError, OverflowError) as problem:
            raise refusal_of(features, problem) from None
        return self.end_read(features, view, i)

    cdef int read_row(self, RowsView view, int i) except -1:
        """Read a row's values."""
        cdef DriftTracker *t = &self.state.t
        cdef double v
        cdef int j, k, column
        self.index(view)
        view.take(i)
        for k in range(view.count):
            column, v = view.columns[k] if view.columns != NULL else k, view.numbers[k]
            j = self.numbers[column]
            if j >= 0:
                t.raw[j] = v if v != DRIFT_ABSENT else INFINITY  # which is refused
            elif v == v:
                if self.new_values is None:
                    self.new_values = {}
                self.new_values[column if self.header is None else self.header[column]] = v
        return 0

    cdef int index(self, RowsView view) except -1:
        """Look up the columns of a batch among the names."""
        cdef Py_ssize_t place, width = view.width
        cdef int32_t *numbers
        cdef int k
        if view.names is not self.header or width > self.width or self.numbers == NULL:
            self.places = None if view.names is None else {name: k for k, name in enumerate(view.names)}
            numbers = <int32_t *>realloc(self.numbers, max(width, 1) * sizeof(int32_t))
            if numbers == NULL:
                raise MemoryError("no room for columns")
            memset(numbers, 0xFF, width * sizeof(int32_t))
            self.numbers, self.width, self.header, self.n_entered = numbers, width, view.names, 0
        for k in range(self.n_entered, <int>len(self.names)):
            name = self.names[k]
            place = index_of(name) if self.places is None else self.places.get(name, -1)
            if 0 <= place < self.width:
                self.numbers[place] = k
        self.n_entered = <int>len(self.names)
        return 0

    cdef int read_any(self, dict features) except -1:
        """Read names and values that may run the caller's code."""
        cdef DriftTracker *t = &self.state.t
        cdef int j, k
        features_read = []
        for name, value in list(features.items()):
            j = drift_vocabulary_find(&self.vocabulary, <PyObject *>name, hash(name), NULL, False)
            features_read.append((j, name, NAN if value is None else double_of(value)))
        self.new_values = {name: v for j, name, v in features_read if j < 0 and v == v}
        for k in range(len(self.names)):
            t.raw[k] = DRIFT_ABSENT
        for j, _, v in features_read:
            if j >= 0:
                t.raw[j] = v if v != DRIFT_ABSENT else INFINITY
        return 0

    cdef bint end_read(self, dict features, RowsView view, int i) except -1:
        cdef DriftTracker *t = &self.state.t
        cdef double squares = 0.0
        cdef int j, n = <int>len(self.names)
        cdef bint same
        self.n_present = self.n_new = 0
        for j in range(n):
            if t.raw[j] == t.raw[j] and t.raw[j] != DRIFT_ABSENT:
                squares += t.raw[j] * t.raw[j]
                self.n_present += t.raw[j] != 0.0
                self.n_new += t.raw[j] != 0.0 and t.features[j].present == 0.0
        if self.new_values:
            for v in self.new_values.values():
                squares += <double>v * <double>v
                self.n_present += v != 0.0
                self.n_new += v != 0.0
        if not squares <= LARGEST:
            raise self.refusal(features, view, i)
        same = memcmp(t.raw, t.last_raw, n * sizeof(double)) == 0 and (self.new_values or None) == self.last_new_values
        memcpy(t.last_raw, t.raw, n * sizeof(double))
        self.last_new_values = self.new_values or None
        self.new_names = NONE
        if not self.new_values:
            return same
        self.new_names = in_order(list(self.new_values))[: max(DRIFT_DENSE_NAMES - n, 0)]
        self.reserve(n + <int>len(self.new_names))
        for j, name in enumerate(self.new_names):
            t.raw[n + j] = self.new_values[name]
            memset(&t.features[n + j], 0, sizeof(DriftFeature))
        return same

    cdef int make_point(self) except -1:
        cdef DriftTracker *t = &self.state.t
        cdef int j, d = <int>len(self.names) + <int>len(self.new_names)
        cdef double n = t.sums.examples + 1.0, scale
        self.squares = drift_features_read(t.read_features, t.features, t.raw, t.standardised, t.curves, d, n)
        drift_hats(&t.hats, t.hat_knots, t.hat_heights, t.curves, d)
        scale = sqrt((t.sums.squares + self.squares) / n + 1e-9)
        t.squared_norm = 0.0
        t.n_values = 0
        for j in range(d):
            t.cell_values[j] = <float>(t.standardised[j] / scale)
            t.input_cells[j] = j
            t.squared_norm += <double>t.cell_values[j] * <double>t.cell_values[j]
            if t.cell_values[j] != 0.0:
                t.numbers[t.n_values] = j
                t.values[t.n_values] = t.cell_values[j]
                t.n_values += 1
        t.n_cells = d
        drift_read_tree_row(t, d, n)
        self.make_context(d)
        return 0

    cdef int make_context(self, int d) noexcept:
        """Read the example's context, if it has one."""
        cdef DriftTracker *t = &self.state.t
        t.n_context = DRIFT_CONTEXT_INPUTS * d if d <= DRIFT_CONTEXT else 0
        drift_context_deviations(t)
        return self.read_context()

    cdef int read_context(self) noexcept:
        cdef DriftTracker *t = &self.state.t
        cdef double n = t.sums.examples + 1.0, scale
        cdef int j
        drift_read_context_tree_row(t)
        self.context_squares = drift_context_read(t, n)
        scale = sqrt((t.sums.context_squares + self.context_squares) / n + 1e-9)
        for j in range(t.n_context):
            t.context_values[j] = <float>(t.context_standardised[j] / scale)
            t.input_cells[j] = j
        drift_hats(&t.context_hats, t.context_hat_knots, t.context_hat_heights, t.context_curves, t.n_context)
        return 0

    cdef int add_names(self) except -1:
        cdef int k, n = <int>len(self.names)
        cdef uint64_t hashed
        self.next_names = self.names + self.new_names if self.new_names else self.names
        try:
            for k, name in enumerate(self.new_names):
                if not drift_is_plain_name(<PyObject *>name) or not hash_plain(name, &hashed):
                    hashed = <uint64_t>hash_of(name)
                self.state.t.hashes[n + k] = drift_number_of(hashed)
                if drift_vocabulary_enter(&self.vocabulary, <PyObject *>name, hash(name), n + k):
                    raise MemoryError("no room for names")
        except BaseException:  # a name's __hash__ may raise anything
            self.drop_names()
            raise
        return 0

    cdef void drop_names(self) noexcept:
        for name in self.new_names:
            drift_vocabulary_drop(&self.vocabulary, <PyObject *>name)

    cdef uint64_t key(self) except? 0:
        cdef DriftTracker *t = &self.state.t
        cdef int j, n = <int>len(self.names)
        cdef uint64_t key = 0
        for j in range(n):
            if t.raw[j] == t.raw[j] and t.raw[j] != DRIFT_ABSENT:
                key += drift_key_part(t.hashes[j], t.raw[j])
        for j, name in enumerate(self.new_names):
            key += drift_key_part(<uint64_t>number_of(name), t.raw[n + j])
        return key

    cdef void update_context(self) noexcept:
        drift_means_learn(&self.state.t, 0, <int>len(self.names))

    cdef void use_context(self, const float *back, int n) noexcept:
        cdef DriftTracker *t = &self.state.t
        cdef int k
        for k in range(t.n_context // DRIFT_CONTEXT_INPUTS * DRIFT_N_HORIZONS):
            t.raw_deviations[k] = back[k] if k < n else NAN
        self.read_context()
        self.current = False  # no prediction uses a past context

    cdef void learn(self, bint context_updated) noexcept:
        cdef DriftTracker *t = &self.state.t
        cdef int n = <int>len(self.names), d = n + <int>len(self.new_names)
        t.sums.examples += 1.0
        t.sums.values += self.n_present
        t.sums.squares += self.squares
        t.sums.context_squares += self.context_squares
        drift_features_learn(t, d)
        drift_means_learn(t, n if context_updated else 0, d)  # new names had no means
        self.names, self.new_names = self.next_names, NONE
        self.n_active += self.n_new
        self.current = False


cdef class Sparse(Scale):
    """Rows at unit norm, their features numbered by hashes of their names.

    Parameters
    ----------
    state
        The tracker's memory, which has the hashes of features that are standardised.
    common
        Their number.
    """

    cdef readonly int common
    cdef int n_read, n_last
    cdef bytearray hashes  # of the header's names

    def __init__(self, State state, int common):
        super().__init__(state)
        self.common, self.n_last = common, -1
        state.reserve({"cells": 1 + DRIFT_HASH_SLOTS})
        drift_hats(&state.t.hats, state.t.hat_knots, state.t.hat_heights, NULL, 0)
        drift_hats(&state.t.context_hats, state.t.context_hat_knots, state.t.context_hat_heights, NULL, 0)

    cdef bint read_values(self, dict features, RowsView view, int i) except -1:
        cdef DriftTracker *t = &self.state.t
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef double v
        cdef uint64_t hashed
        cdef int n = 0, k
        if features is None:
            return self.end_read(self.read_row(view, i), None, view, i)
        self.reserve(<int>len(features))
        try:
            while PyDict_Next(features, &position, &name, &value):
                if not drift_is_plain(name, value) or not hash_plain(<object>name, &hashed):
                    n = self.read_any(features)
                    break
                v = drift_number(value)
                if v == v and v != 0.0:
                    t.keys[n] = drift_number_of(hashed) << 32 | <uint64_t>n
                    t.standardised[n] = v
                    n += 1
        except (TypeError, ValueError, OverflowError) as problem:
            raise refusal_of(features, problem) from None
        return self.end_read(n, features, view, i)

    cdef int read_row(self, RowsView view, int i) except -1:
        """Read a row's values; return how many there are."""
        cdef DriftTracker *t = &self.state.t
        cdef const uint64_t *hashes = NULL
        cdef uint64_t hashed
        cdef double v
        cdef int k, column, n = 0
        view.take(i)
        self.reserve(view.count)
        if view.names is not None:
            hashes = self.header_hashes(view.names)
        for k in range(view.count):
            column, v = view.columns[k] if view.columns != NULL else k, view.numbers[k]
            if v == v and v != 0.0:
                hashed = hashes[column] if hashes != NULL else drift_mix(<uint64_t>column + drift_step)
                t.keys[n] = drift_number_of(hashed) << 32 | <uint64_t>n
                t.standardised[n] = v
                n += 1
        return n

    cdef const uint64_t *header_hashes(self, names) except NULL:
        """Hashes of the columns' names."""
        cdef uint64_t *hashes
        cdef Py_ssize_t k
        if names is not self.header:
            self.hashes = bytearray((len(names) + 1) * sizeof(uint64_t))
            hashes = <uint64_t *>PyByteArray_AsString(self.hashes)
            for k, name in enumerate(names):
                if not drift_is_plain_name(<PyObject *>name) or not hash_plain(name, &hashes[k]):
                    hashes[k] = <uint64_t>hash_of(name)
            self.header = names
        return <const uint64_t *>PyByteArray_AsString(self.hashes)

    cdef int read_any(self, dict features) except -1:
        """Read names and values that may run the caller's code; return how many have a value."""
        cdef DriftTracker *t = &self.state.t
        cdef int n = 0
        pairs = [(hash_of(name), NAN if value is None else double_of(value)) for name, value in list(features.items())]
        self.reserve(<int>len(pairs))
        for hashed, v in pairs:
            if v == v and v != 0.0:
                t.keys[n] = drift_number_of(<uint64_t>hashed) << 32 | <uint64_t>n
                t.standardised[n] = v
                n += 1
        return n

    cdef int reserve(self, int n) except -1:
        """Make room for so many values."""
        if n >= self.state.t.hashed:
            self.state.reserve(dict.fromkeys(("inputs", "linear_inputs", "hashed"), n + n // 4 + 8))
        return 0

    cdef bint end_read(self, int n, dict features, RowsView view, int i) except -1:
        """Sort the values by hash and add up equal ones, so that all sums have one order."""
        cdef DriftTracker *t = &self.state.t
        cdef int k, m = 0
        cdef int32_t number
        cdef double squares = 0.0
        cdef bint same
        drift_sort_numbers(t.keys, t.spare_keys, n)
        for k in range(n):
            number = <int32_t>(t.keys[k] >> 32)
            if m and t.raw_numbers[m - 1] == number:
                t.raw[m - 1] += t.standardised[<uint32_t>t.keys[k]]
            else:
                t.raw_numbers[m], t.raw[m] = number, t.standardised[<uint32_t>t.keys[k]]
                m += 1
            squares += t.standardised[<uint32_t>t.keys[k]] * t.standardised[<uint32_t>t.keys[k]]
        if not squares <= LARGEST:
            self.n_last = -1
            raise self.refusal(features, view, i)
        same = (
            m == self.n_last
            and memcmp(t.raw_numbers, t.last_numbers, m * sizeof(int32_t)) == 0
            and memcmp(t.raw, t.last_raw, m * sizeof(double)) == 0
        )
        memcpy(t.last_numbers, t.raw_numbers, m * sizeof(int32_t))
        memcpy(t.last_raw, t.raw, m * sizeof(double))
        self.n_last = self.n_read = m
        return same

    cdef int make_point(self) except -1:
        cdef DriftTracker *t = &self.state.t
        cdef int k, place, n = 0
        cdef int32_t cell
        cdef double squares = 0.0, norm
        cdef float unit
        cdef DriftFeature feature
        for k in range(self.n_read):
            t.values[k] = t.last_raw[k]
            place = self.common_index(t.last_numbers[k])
            if place >= 0:
                feature = t.features[place]
                t.values[k] = drift_feature_standardise(&feature, t.last_raw[k])
            squares += t.values[k] * t.values[k]
        norm = sqrt(squares) or INFINITY
        t.n_values = t.n_cells = 0
        t.squared_norm = 0.0
        for k in range(self.n_read):
            unit = <float>(t.values[k] / norm)
            if unit == 0.0:
                continue
            t.numbers[n], t.values[n] = t.last_numbers[k], unit
            t.squared_norm += t.values[n] * t.values[n]
            cell = <int32_t>(<int64_t>t.numbers[n] * DRIFT_HASH_SLOTS >> DRIFT_NUMBER_BITS)
            if t.n_cells and t.input_cells[t.n_cells - 1] == cell:
                t.cell_values[t.n_cells - 1] += <float>t.values[n]
            else:
                t.input_cells[t.n_cells], t.cell_values[t.n_cells] = cell, <float>t.values[n]
                t.n_cells += 1
            n += 1
        t.n_values = n
        return 0

    cdef int common_index(self, int32_t number) noexcept:
        """Index of a feature among those that are standardised, or -1."""
        cdef int low = 0, high = self.common, middle
        cdef int32_t *common = self.state.t.common
        while low < high:
            middle = (low + high) // 2
            if common[middle] < number:
                low = middle + 1
            else:
                high = middle
        return low if low < self.common and common[low] == number else -1

    cdef uint64_t key(self) except? 0:
        cdef DriftTracker *t = &self.state.t
        cdef int k
        cdef uint64_t key = 0
        for k in range(self.n_last):
            key += drift_key_part(<uint64_t>t.last_numbers[k], t.last_raw[k])
        return key

    cdef void learn(self, bint context_updated) noexcept:
        cdef DriftTracker *t = &self.state.t
        cdef int k, place
        t.sums.examples += 1.0
        t.sums.values += self.n_read
        for k in range(self.n_read if self.common else 0):
            place = self.common_index(t.last_numbers[k])
            if place >= 0:
                drift_feature_standardise(&t.features[place], t.last_raw[k])
        self.current = False


cdef bint hash_plain(name, uint64_t *hashed) except -1:
    """Hash a text or int as `names` does; False for a text without UTF-8."""
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
