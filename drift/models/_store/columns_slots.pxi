# The lowest layer: columns by feature, their names, and the supports' slots. It holds what a store is.
#
# A column has a name and at least one value, or it is free and in `free_columns`. A slot below `n_slots` has a
# support, or it is free and in `free_slots`, or the current update has evicted its support. `_slots_by_age` has the
# slots of supports. The layers above read all this; only `Changes` adds and removes.

cdef Py_ssize_t index_below(name, Py_ssize_t width) except -2:
    """Array column of a name, or -1 if there is none below `width`."""
    if PyUnicode_CheckExact(name):
        return -1
    index = name if PyLong_CheckExact(name) else index_of(name)
    return index if 0 <= index < width else -1


cdef class Slots:
    """The lowest layer: a column for each feature, and a slot for each support."""

    cdef public Guard guard  # lock of the model
    cdef readonly Calibration calibration  # of the model's scores
    cdef readonly bint wide  # float64 columns
    cdef object limit  # number of slots not to exceed when growing ahead of need, or None

    # The kernel.
    cdef readonly object kernel
    cdef int kernel_kind, degree
    cdef double coef0, gamma
    cdef bint unit_norm  # examples are stored with unit norm
    cdef bint divides_by_norms  # k(a, b) / sqrt(k(a, a) k(b, b))
    cdef public double largest_self_kernel  # a bound on k(x, x), for kernels that grow with x
    cdef double exact_above  # gamma |x|^2 above which the RBF needs exact distances
    cdef double distance_error  # share of |a|^2 + |b|^2 that a distance not exact may err by
    cdef readonly double relative_tolerance  # a score up to this times its terms' magnitudes is rounding error

    # The columns.
    cdef DriftColumn *columns
    cdef int n_columns, column_room
    cdef list names  # of each column, None if it is free; after the last column there may be more None
    cdef DriftVocabulary vocabulary  # the column of each name
    cdef Stack free_columns  # with room for all columns

    # The columns of the batch that is read, at positions 0, 1, 2, ...
    cdef object batch_names  # None: the columns have numbers
    cdef dict positions  # of each name
    cdef int32_t *column_of  # the store's column at each position, or -1; NULL if there is no such table
    cdef Py_ssize_t batch_width

    # The slots. In a free slot the coefficient, the dot factor and |x|^2 are 0, and there are no features. A slot whose
    # support the current update has evicted has the coefficient and the dot factor 0 already; `finish` does the rest.
    cdef readonly int capacity  # a multiple of the lanes, so that loops have no tail
    cdef int n_slots  # slots from this on were never used
    cdef Stack free_slots  # with room for all slots
    cdef int32_t **features  # columns in which the slot has a value
    cdef int32_t *n_features
    cdef double *unscaled_coefficients  # divided by `coefficient_factor`, so that scaling all takes constant time
    cdef double coefficient_factor  # of all coefficients
    cdef double *dot_factors  # stored values' inner product * both factors = inner product, the cosine factors included
    cdef double *squared_norms  # |x|^2
    cdef double *cosine_factors  # see `cosine_factor_of`

    # The point, by slot.
    cdef void *dots_block
    cdef void *dots  # inner products, in their block after a group of lanes for padding cells
    cdef double *kernels

    # The supports, the oldest first. Methods have these names without the underscore.
    cdef int32_t *_slots_by_age
    cdef int64_t *_serials_by_age
    cdef int _n_supports
    cdef readonly int64_t n_added  # the last serial number

    # The log of columns, which `Changes.undo` reads.
    cdef bint in_update  # changes are logged
    cdef Stack named  # columns that got a name
    cdef Stack converted  # j: column j turned dense; ~j: it turned sparse
    cdef int fewest_free  # the least number of free columns since the update began

    def __cinit__(self, kernel, bint wide=False, limit=None):
        self.kernel = kernel
        self.wide = wide
        self.limit = limit
        self.relative_tolerance = RELATIVE_TOLERANCE if wide else constants.RELATIVE_TOLERANCE_FLOAT32
        self.exact_above = constants.EXACT_ABOVE if wide else constants.EXACT_ABOVE_FLOAT32
        self.distance_error = constants.DISTANCE_ERROR if wide else constants.DISTANCE_ERROR_FLOAT32
        self.largest_self_kernel = LARGEST
        self.kernel_kind = DRIFT_CUSTOM
        if type(kernel) is Linear:
            self.kernel_kind = DRIFT_LINEAR
            self.degree = 1
        elif type(kernel) is Polynomial:
            self.kernel_kind = DRIFT_POLYNOMIAL
            self.degree = kernel.degree
            self.coef0 = kernel.coef0
        elif type(kernel) is RBF:
            self.kernel_kind = DRIFT_RBF
            self.gamma = kernel.gamma
        self.unit_norm = self.kernel_kind != DRIFT_CUSTOM and kernel.scales_rows
        self.divides_by_norms = self.kernel_kind == DRIFT_POLYNOMIAL and kernel.normalize and not self.unit_norm
        self.coefficient_factor = 1.0
        self.names = []
        self.guard = Guard()
        self.calibration = Calibration()

    def __dealloc__(self):
        cdef int j
        free(self.free_columns.items); free(self.free_slots.items)
        free(self._slots_by_age); free(self._serials_by_age)
        free(self.named.items); free(self.converted.items)
        for j in range(self.n_columns):
            drift_clear(&self.columns[j])
        for j in range(self.capacity):
            free(self.features[j])
        free(self.columns); free(self.vocabulary.entries); free(self.column_of)
        free(self.features); free(self.n_features)
        drift_free(self.unscaled_coefficients); drift_free(self.dot_factors); drift_free(self.squared_norms)
        drift_free(self.cosine_factors)
        drift_free(self.kernels); drift_free(self.dots_block)

    # --- reading the supports -------------------------------------------------------------------

    def n_supports(self):
        """Return the number of supports."""
        return self._n_supports

    def slot(self, int i):
        """Return the slot of the `i`-th oldest support, from 0; negative: from the newest, -1."""
        if not -self._n_supports <= i < self._n_supports:
            raise IndexError(f"support {i} of {self._n_supports}")
        return self._slots_by_age[i + self._n_supports if i < 0 else i]

    def slots_by_age(self):
        """Return the supports' slots, the oldest first."""
        return [self._slots_by_age[k] for k in range(self._n_supports)]

    def serials_by_age(self):
        """Return the supports' serial numbers, counting all ever added from 1; the oldest first."""
        return [self._serials_by_age[k] for k in range(self._n_supports)]

    def support_in_slot(self, int slot):
        """Return a support: of unit norm if the kernel normalises examples, else as added."""
        cdef int k
        cdef dict x = {}
        self.check_slot(slot)
        for k in range(self.n_features[slot]):
            j = self.features[slot][k]
            x[self.names[j]] = self.get(&self.columns[j], slot) * self.divisor_of(slot)
        return x

    def coefficient_in_slot(self, int slot):
        """Return the coefficient of the support in a slot."""
        self.check_slot(slot)
        return self.coefficient_factor * self.unscaled_coefficients[slot]

    def write_coefficients(self, out):
        """Write the coefficient of each slot, 0 for a free one; return the number of slots."""
        cdef Buffer buffer = buffer_of(out, b"d", PyBUF_WRITABLE)
        cdef double *by_slot = doubles(buffer, self.n_slots)
        cdef int slot
        for slot in range(self.n_slots):
            by_slot[slot] = self.coefficient_factor * self.unscaled_coefficients[slot]
        return self.n_slots

    def slot_of_smallest(self, magnitudes=None):
        """Return the slot of the smallest support, without the newest; of equal ones the oldest."""
        cdef Buffer buffer = None if magnitudes is None else buffer_of(magnitudes, b"d")
        cdef const double *by_slot = self.unscaled_coefficients if buffer is None else doubles(buffer, self.n_slots)
        cdef double least = INFINITY
        cdef int k
        for k in range(self._n_supports - 1):
            least = min(least, fabs(by_slot[self._slots_by_age[k]]))
        for k in range(self._n_supports - 1):
            if fabs(by_slot[self._slots_by_age[k]]) <= least * (1.0 + self.relative_tolerance):
                return self._slots_by_age[k]
        raise IndexError("no support but the newest") if self._n_supports < 2 else ValueError("all magnitudes are NaN")

    # --- slots, from inside ---------------------------------------------------------------------

    cdef inline int check_slot(self, int slot) except -1:
        """Raise IndexError unless there is a support in the slot."""
        if not 0 <= slot < self.n_slots or self.dot_factors[slot] == 0.0:
            raise IndexError(f"no support is in slot {slot}")
        return 0

    cdef double cosine_factor_of(self, double squared_norm) noexcept:
        """``sqrt((1 + c) / (|x|^2 + c))``, where ``c`` is the kernel's constant term; 1 without a cosine.

        It makes k(x, x) that of an example of unit norm.
        """
        return sqrt(1.0 + self.coef0) / sqrt(squared_norm + self.coef0) if self.divides_by_norms else 1.0

    cdef double divisor_of(self, int slot) noexcept:
        """What the slot's values were divided by: its dot factor is this times its cosine factor."""
        return self.dot_factors[slot] / self.cosine_factors[slot] if self.dot_factors[slot] else 0.0  # exact

    cdef int padded_slots(self) noexcept:
        """The slots in use, rounded up to the lanes."""
        return (self.n_slots + DRIFT_LANES - 1) // DRIFT_LANES * DRIFT_LANES

    # --- columns --------------------------------------------------------------------------------

    cdef double get(self, DriftColumn *column, int slot) noexcept:
        """The stored value of a slot in a column; 0 if it has none."""
        return drift_get(self.wide, column, slot)

    cdef int put(self, int j, int slot, double value) except -1:
        """Write a value, divided by the slot's divisor, into a slot, unless it rounds to 0."""
        cdef int max_sparse = self.capacity // DRIFT_DENSE
        cdef bint dense = drift_is_dense(&self.columns[j])
        value = value if self.wide else <float>value
        if value != 0.0 and drift_put(self.wide, &self.columns[j], slot, value, self.capacity, max_sparse):
            raise MemoryError(NO_MEMORY)
        self.log_conversion(j, dense)
        if value != 0.0:
            self.features[slot][self.n_features[slot]] = j
            self.n_features[slot] += 1
        elif self.columns[j].size == 0:
            problem = self.free_column(j)
            if problem is not None:
                raise problem
        return 0

    cdef void log_conversion(self, int j, bint dense) noexcept:
        """Log a column's conversion between dense and sparse, if there was one.

        `reserve_slots` and `Changes.add` have reserved the room.
        """
        if dense != drift_is_dense(&self.columns[j]) and self.in_update and self.converted.size < self.converted.room:
            push(&self.converted, ~j if dense else j)

    cdef int make_dense(self, int j, bint dense) except -1:
        """Make a column dense or sparse, if it is not."""
        cdef DriftColumn *column = &self.columns[j]
        cdef int failed = 0
        if column.size and dense and not drift_is_dense(column):
            failed = drift_make_dense(self.wide, column, self.capacity)
        elif column.size and drift_is_dense(column) and not dense:
            failed = drift_make_sparse(self.wide, column, self.capacity)
        if failed:
            raise MemoryError(NO_MEMORY)
        return 0

    # --- names of columns -----------------------------------------------------------------------

    cdef int find(self, name) except -2:
        """Column of a name, or -1."""
        return drift_vocabulary_find(&self.vocabulary, <PyObject *>name, hash(name), NULL, False)

    cdef int new_column(self, name) except -1:
        """Give a name a column."""
        cdef bint appended = self.free_columns.size == 0
        cdef int j = self.append_column() if appended else self.free_columns.items[self.free_columns.size - 1]
        reserve(&self.named, 1)
        self.name_column(j, name)
        if not appended:
            self.free_columns.size -= 1
        if self.in_update and (appended or self.free_columns.size < self.fewest_free):
            push(&self.named, j)
            self.fewest_free = min(self.fewest_free, self.free_columns.size)
        return j

    cdef int append_column(self) except -1:
        """Make a column without a name, and return it."""
        cdef int j = self.n_columns, room = max(8, 2 * j)
        if j == self.column_room:
            reserve(&self.free_columns, room)
            self.columns = <DriftColumn *>grown(self.columns, room * sizeof(DriftColumn))
            self.column_room = room
        if j == len(self.names):  # else an undone update left a None
            self.names.append(None)
        memset(&self.columns[j], 0, sizeof(DriftColumn))
        self.n_columns += 1
        return j

    cdef int name_column(self, int j, name) except -1:
        """Enter a column's name in the vocabulary, and in the batch's table if it is there."""
        cdef Py_ssize_t position = self.position_of(name)
        if drift_vocabulary_enter(&self.vocabulary, <PyObject *>name, hash(name), j):
            raise MemoryError(NO_MEMORY)
        self.names[j] = name
        if position >= 0:
            self.column_of[position] = j
        return 0

    cdef object free_column(self, int j):
        """Free a column and its name, even if the name's code raises; return that exception, or None."""
        cdef Py_ssize_t position, k
        problem = None
        name = self.names[j]
        try:
            drift_vocabulary_leave(&self.vocabulary, <PyObject *>name, drift_fold(hash(name)))
            position = self.position_of(name)
            if position >= 0:
                self.column_of[position] = -1
        except BaseException as error:
            problem = error
            drift_vocabulary_drop(&self.vocabulary, <PyObject *>name)
            for k in range(self.batch_width):
                if self.column_of[k] == j:
                    self.column_of[k] = -1
        self.names[j] = None
        push(&self.free_columns, j)
        drift_clear(&self.columns[j])
        return problem

    # --- the batch's columns --------------------------------------------------------------------

    cdef Py_ssize_t position_of(self, name) except -2:
        """Position of a name among the batch's columns, or -1."""
        if self.column_of == NULL:
            return -1
        return index_below(name, self.batch_width) if self.batch_names is None else self.positions.get(name, -1)

    cdef int look_up_batch(self, RowsView view) except -1:
        """Look up the columns of a batch, unless they are those looked up last."""
        cdef Py_ssize_t position, width = view.width
        names = view.names
        if self.batch_names is not names:
            self.forget_batch()
        if names is not None and self.batch_names is None:
            self.look_up_names(names)
        elif names is None and width > indexed_width:
            self.forget_batch()
        elif names is None and width > self.batch_width:
            self.column_of = <int32_t *>grown(self.column_of, width * sizeof(int32_t))
            self.batch_width = width
            memset(self.column_of, 0xFF, width * sizeof(int32_t))
            for j, name in enumerate(self.names[: self.n_columns]):
                position = index_below(name, width) if self.columns[j].size else -1
                if position >= 0:
                    self.column_of[position] = j
        return 0

    cdef int look_up_names(self, names) except -1:
        """Look up the names of columns."""
        cdef dict positions = {name: k for k, name in enumerate(names)}
        cdef Py_ssize_t k, width = len(names)
        cdef int32_t *column_of = <int32_t *>grown(NULL, width * sizeof(int32_t))
        cdef int64_t n_added = self.n_added
        try:
            for k, name in enumerate(names):
                column_of[k] = self.find(name)
            if n_added != self.n_added or self.column_of != NULL:  # changed by a name's __eq__
                raise RuntimeError(IN_USE)
        except:
            free(column_of)
            raise
        self.batch_names, self.positions, self.column_of, self.batch_width = names, positions, column_of, width
        return 0

    cdef void forget_batch(self) noexcept:
        """Forget the columns looked up."""
        free(self.column_of)
        self.column_of, self.batch_width = NULL, 0
        self.batch_names = self.positions = None

    # --- room -----------------------------------------------------------------------------------

    cdef int reserve_slots(self, int count) except -1:
        """Make room for `count` slots, doubling up to the limit."""
        cdef int j, before = self.capacity, after = max(2 * before, count)
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), more
        if count <= before:
            return 0
        if self.limit is not None and self.limit >= count:
            after = min(after, self.limit)
        after = (after + DRIFT_LANES - 1) // DRIFT_LANES * DRIFT_LANES
        reserve(&self.free_slots, after - self.free_slots.size)
        self._slots_by_age = <int32_t *>grown(self._slots_by_age, after * sizeof(int32_t))
        self._serials_by_age = <int64_t *>grown(self._serials_by_age, after * sizeof(int64_t))
        self.features = <int32_t **>grown(self.features, after * sizeof(void *))
        self.n_features = <int32_t *>grown(self.n_features, after * sizeof(int32_t))
        self.unscaled_coefficients = <double *>grown_aligned(self.unscaled_coefficients, before, after, sizeof(double))
        self.dot_factors = <double *>grown_aligned(self.dot_factors, before, after, sizeof(double))
        self.squared_norms = <double *>grown_aligned(self.squared_norms, before, after, sizeof(double))
        self.cosine_factors = <double *>grown_aligned(self.cosine_factors, before, after, sizeof(double))
        self.kernels = <double *>grown_aligned(self.kernels, before, after, sizeof(double))
        self.dots_block = grown_aligned(self.dots_block, 0, after + DRIFT_LANES, real)
        self.dots = <char *>self.dots_block + DRIFT_LANES * real
        for j in range(self.n_columns):
            if not drift_is_dense(&self.columns[j]):
                continue
            if self.columns[j].size < after // DRIFT_SPARSE:
                reserve(&self.converted, 1)
                self.make_dense(j, False)
                self.log_conversion(j, True)
            elif drift_grow_dense(self.wide, &self.columns[j], before, after):
                raise MemoryError(NO_MEMORY)
        more = after - before
        memset(self.features + before, 0, more * sizeof(void *))
        memset(self.n_features + before, 0, more * sizeof(int32_t))
        self.capacity = after
        return 0

    cdef Py_ssize_t slot_bytes(self) noexcept:
        """Memory of the columns, their names and the slots."""
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), size = 0
        cdef int j
        for j in range(self.n_columns):
            if drift_is_dense(&self.columns[j]):
                size += self.capacity * real
            elif self.columns[j].room > 1:
                size += self.columns[j].room * 2 * real  # a cell is a slot and a value, aligned
        for j in range(self.capacity):
            size += self.n_features[j] * sizeof(int32_t)
        size += self.column_room * sizeof(DriftColumn) + self.batch_width * sizeof(int32_t)
        size += (self.vocabulary.mask + 1) * sizeof(DriftEntry)
        return size + self.capacity * (sizeof(void *) + 3 * sizeof(int32_t) + 6 * sizeof(double) + real)
