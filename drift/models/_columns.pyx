# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The column store: support vectors by feature, so that a score touches only what an example has.

One column per feature holds the supports' values for it, sparse while few supports have the feature
and dense above an eighth of them. The vocabulary is owned by the supports: a name whose column
empties is forgotten. `drift.models._columns_py` is the same contract in plain Python.

Rows lie in the columns as the kernel sees them: scaled to unit norm if the kernel normalises, else
by a power of two to a norm in [1/2, 1), which is exact and keeps float32 far from its limits;
`scale` takes the slot back. Everything else (norms, coefficients, kernel values) is double.
"""

cimport cython
from cpython.float cimport PyFloat_AsDouble, PyFloat_Check
from cpython.long cimport PyLong_AsLong, PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_Next
from cpython.unicode cimport PyUnicode_CheckExact
from cpython.pythread cimport PyThread_get_thread_ident
from libc.math cimport exp, fabs, frexp, ldexp, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from array import array

from drift.errors import FeatureError, FeatureTypeError, ParameterError
from drift.kernels import RBF, Linear, Polynomial
from drift.models._names import IN_USE, INDEXED_WIDTH, Row, as_dict, culprit, in_order, index_of


cdef extern from *:
    """
    #define WINDOW 64 /* rows of one, at most */
    #define LARGEST_WINDOW (1 << 23) /* bytes */
    #define LEAST_SLOTS 512
    #define LEAST_DENSE (1 << 19) /* bytes of a row's dense columns: fewer the nearest cache keeps */
    #define REAL float
    #include "_columns.h"
    #include "_vocabulary.h"
    #undef REAL
    #define REAL double
    #include "_columns.h"
    #undef REAL
    #include "_ahead.h"
    """
    ctypedef struct DriftColumn:
        void *block
        int32_t size
        int32_t room
    void *drift_grow(void *, size_t, size_t) nogil
    void drift_free(void *) nogil
    bint drift_is_dense(const DriftColumn *) nogil
    void drift_clear(DriftColumn *) nogil
    ctypedef struct DriftVocabulary:
        void *entries
        size_t mask
        size_t size
    bint drift_is_plain(PyObject *, PyObject *) nogil
    bint drift_is_number(PyObject *, double) nogil
    int drift_same(PyObject *, PyObject *) except -1
    Py_hash_t drift_hash(PyObject *) except -1
    double drift_number(PyObject *) except? -1.0
    void drift_vocabulary_prefetch(const DriftVocabulary *, Py_hash_t) nogil
    int32_t drift_vocabulary_find(const DriftVocabulary *, PyObject *, Py_hash_t, PyObject **) except -2
    int drift_vocabulary_enter(DriftVocabulary *, PyObject *, Py_hash_t, int32_t) nogil
    void drift_vocabulary_leave(DriftVocabulary *, PyObject *, Py_hash_t) nogil
    enum: DRIFT_LINEAR, DRIFT_POLYNOMIAL, DRIFT_RBF, DRIFT_CUSTOM, DRIFT_LANES, DRIFT_CHUNK
    enum: WINDOW, LARGEST_WINDOW, LEAST_SLOTS, LEAST_DENSE
    void DRIFT_PREFETCH(void *) nogil
    void drift_prefetch_head(const DriftColumn *) nogil
    void drift_prefetch_rest(const DriftColumn *) nogil
    double drift_weighted_sum(const double *, const double *, int, double, double *) nogil
    double drift_power(double, int) nogil
    void drift_polynomial(double *, int, double, int) nogil
    void drift_rbf(double *, const double *, double, double, int) nogil
    void drift_rbf_exact(double *, const double *, double, double, int) nogil
    void drift_sort(uint64_t *, uint64_t *, int, uint32_t) nogil
    void drift_dots_float(DriftColumn *, const int32_t *, const double *, int, void *, int, const void *, const int32_t *, int) nogil
    void drift_dots_double(DriftColumn *, const int32_t *, const double *, int, void *, int, const void *, const int32_t *, int) nogil
    int drift_take_dense_float(const DriftColumn *, const int32_t *, const double *, int, const void **, void *) nogil
    int drift_take_dense_double(const DriftColumn *, const int32_t *, const double *, int, const void **, void *) nogil
    void drift_add_windows_float(void *, int, const void **, void *, const int *, const int *, int, int) nogil
    void drift_add_windows_double(void *, int, const void **, void *, const int *, const int *, int, int) nogil
    double drift_score_float(const double *, const float *, const double *, double, int, double, int, double, double *) nogil
    double drift_score_double(const double *, const double *, const double *, double, int, double, int, double, double *) nogil
    double drift_slope(const double *, const float *, const double *, double, int, double, int, double) nogil
    void drift_spread(const DriftColumn *, float *, int) nogil
    void drift_widen_float(double *, const float *, const double *, double, int) nogil
    void drift_widen_double(double *, const double *, const double *, double, int) nogil
    int drift_put_float(DriftColumn *, int, double, int) nogil
    int drift_put_double(DriftColumn *, int, double, int) nogil
    double drift_get_float(DriftColumn *, int) nogil
    double drift_get_double(DriftColumn *, int) nogil
    void drift_drop_float(DriftColumn *, int, int) nogil
    void drift_drop_double(DriftColumn *, int, int) nogil
    int drift_make_dense_float(DriftColumn *, int) nogil
    int drift_make_dense_double(DriftColumn *, int) nogil
    int drift_make_sparse_float(DriftColumn *, int) nogil
    int drift_make_sparse_double(DriftColumn *, int) nogil
    int drift_widen_dense_float(DriftColumn *, int, int) nogil
    int drift_widen_dense_double(DriftColumn *, int, int) nogil
    enum: DRIFT_TILE, DRIFT_AT_ONCE
    void drift_tile_dots(float *, const float *, const int32_t *, const float *, int) nogil
    void drift_into_tiles_float(DriftColumn *, float *, size_t, int) nogil
    void drift_into_tiles_double(DriftColumn *, float *, size_t, int) nogil
    void drift_rough_polynomial(double *, double *, const float *, const double *, double, int, double, int, double, double) nogil
    void drift_rough_rbf(double *, double *, const double *, double, int, double, double, double) nogil
    void drift_rough_score(const double *, const double *, const double *, int, double *, double *) nogil

cdef void *grown(void *block, Py_ssize_t size) except NULL:
    cdef void *result = realloc(block, size if size else 1)
    if result == NULL:
        raise MemoryError("the column store cannot grow")
    return result


cdef void *aligned(void *block, Py_ssize_t before, Py_ssize_t after, Py_ssize_t size) except NULL:
    cdef void *result = drift_grow(block, before * size, after * size)
    if result == NULL:
        raise MemoryError("the column store cannot grow")
    return result


cdef struct Sum:
    # A compensated sum, so that |x|^2 does not depend on the order of the features.
    double total
    double lost


cdef inline void add_square(Sum *sum, double v) noexcept:
    cdef double square = v * v, total = sum.total + square, part = total - sum.total
    sum.lost += (sum.total - (total - part)) + (square - part)
    sum.total = total


cdef bint goes_by(
    const double *scores, const double *errors, const double *factors, int count, int own, double threshold, bint rivals
) noexcept:
    """Whether an example of class `own` surely is no update; see `ColumnStore.scan_classes`."""
    cdef int c
    cdef double sign, least, largest = 0.0
    if not 0 <= own < count:
        return False
    if not rivals:
        for c in range(count):
            sign = factors[c] if c == own else -factors[c]
            if not sign * scores[c] - fabs(factors[c]) * errors[c] > threshold:
                return False
        return True
    for c in range(count):
        largest = max(largest, fabs(factors[c]) * errors[c])
    least = factors[own] * scores[own] - threshold - 4.0 * largest
    if count == 1:
        return least > 0.0
    for c in range(count):
        if c != own and not least > factors[c] * scores[c]:
            return False
    return True


cdef Py_ssize_t index_below(name, Py_ssize_t width) except -2:
    """Array column that a name stands for, or -1 where there is none below `width`."""
    if PyUnicode_CheckExact(name):
        return -1
    index = name if PyLong_CheckExact(name) else index_of(name)
    return index if 0 <= index < width else -1


cdef class ColumnStore:
    """Supports by feature, and the kernel row of one example against all of them.

    Parameters
    ----------
    kernel
        A kernel of `drift.kernels`, computed here, or any other, called with numpy arrays.
    wide
        Keep the columns in float64 instead of float32.
    limit
        Number of supports above which it is not worth reserving room; None for no limit.
    """

    cdef readonly object kernel
    cdef readonly bint wide
    cdef object limit
    cdef int kind, degree
    cdef bint normalize
    cdef double coef0, gamma
    cdef double far  # gamma |x|^2 above which an inner product's rounding shows in the RBF
    cdef readonly double tie  # share of sum |weight * kernel| within which a score is rounding error
    # The columns: names[j] is the name of columns[j], or None while j is in free_columns.
    cdef DriftColumn *columns
    cdef int n_columns, column_room
    cdef DriftVocabulary vocabulary
    cdef list names, free_columns
    cdef int32_t *column_of  # from an array's column to ours, or -1; NULL until an array comes
    cdef Py_ssize_t width
    # The slots: a free one has weight, scale and squared norm 0, and no row.
    cdef readonly int capacity  # a multiple of the lanes, so that a row may be read to its end
    cdef int used
    cdef int32_t **rows
    cdef int32_t *row_size
    cdef double *weight  # times `factor`, which makes scaling all of them take constant time
    cdef double factor
    cdef double *scale
    cdef double *squared
    cdef double *row
    cdef void *work_block
    cdef void *work  # inner products by slot, in work_block behind a row of lanes
    cdef list free_slots
    # The example read last: every feature of it in its order, or of a row what is not zero.
    cdef PyObject **read_names  # borrowed, as the values are: of no meaning after the call
    cdef PyObject **read_values
    cdef PyObject **own_names  # the vocabulary's, NULL for a feature that no support has
    cdef double *numbers
    cdef int32_t *indices
    cdef Py_hash_t *hashes
    cdef int32_t *unknown  # positions of the features that no support has
    cdef int read_size, n_unknown
    cdef bint plain, by_index  # whether reading it runs none of the caller's code; a row
    # The point: known columns and values in the order read, and those read before them.
    cdef int32_t *ids
    cdef int32_t *last_ids
    cdef double *values
    cdef double *last_values
    cdef int32_t *sorted_ids
    cdef double *sorted_values
    cdef uint64_t *keys
    cdef uint64_t *spare_keys
    cdef int count, last_count, point_room
    cdef double point_norm2, last_norm2  # |x|^2 as read, unknown features included
    cdef long serial  # number of points read
    cdef double divisor, point_scale, point_squared
    cdef bint scored, filled, current, ordered  # whether last_score, row, ids, their order hold
    cdef bint was_scored, was_filled  # for the point read before
    cdef unsigned long reader, holder  # threads: that of the point, and that of the update under way
    cdef int holds
    # Rows of a batch that follow each other, and the dense columns' share of their inner products.
    cdef object batch  # of the row read last, while the batch is held
    cdef int point_row, last_row  # number in it of the point, -1 for none, and of the row before
    cdef double streak  # mean of 1 / distance between rows that were scored
    cdef void *window
    cdef int window_start, window_stop, window_stride
    cdef int32_t stale[WINDOW]  # lanes that have changed since
    cdef int n_stale
    cdef double last_score, last_rounding
    cdef object own_kernel  # of an example with the squared norm own_norm2, and itself
    cdef double own_norm2

    def __cinit__(self, kernel, bint wide=False, limit=None):
        self.kernel = kernel
        self.wide = wide
        self.limit = limit
        self.tie = 2.0**-40 if wide else 2.0**-22
        self.far = 2.0**36 if wide else 2.0**10
        self.kind = DRIFT_CUSTOM
        if type(kernel) is Linear:
            self.kind = DRIFT_LINEAR
            self.degree = 1
        elif type(kernel) is Polynomial:
            self.kind = DRIFT_POLYNOMIAL
            self.degree = kernel.degree
            self.coef0 = kernel.coef0
        elif type(kernel) is RBF:
            self.kind = DRIFT_RBF
            self.gamma = kernel.gamma
        self.normalize = self.kind != DRIFT_CUSTOM and kernel.normalize
        self.factor = 1.0
        self.names = []
        self.free_columns = []
        self.free_slots = []
        self.reserve_point(64)

    def __dealloc__(self):
        cdef int j
        for j in range(self.n_columns):
            drift_clear(&self.columns[j])
        for j in range(self.capacity):
            free(self.rows[j])
        free(self.columns); free(self.vocabulary.entries); free(self.column_of)
        free(self.rows); free(self.row_size)
        drift_free(self.weight); drift_free(self.scale); drift_free(self.squared)
        drift_free(self.row); drift_free(self.work_block); free(self.window)
        free(self.own_names); free(self.read_names); free(self.read_values); free(self.hashes)
        free(self.numbers); free(self.indices); free(self.unknown)
        free(self.ids); free(self.last_ids); free(self.values); free(self.last_values)
        free(self.sorted_ids); free(self.sorted_values); free(self.keys); free(self.spare_keys)

    def __sizeof__(self):
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), size = 0
        cdef int j
        for j in range(self.n_columns):
            if drift_is_dense(&self.columns[j]):
                size += self.capacity * real
            elif self.columns[j].room > 1:
                size += self.columns[j].room * 2 * real  # a cell is a slot and a value, aligned
        for j in range(self.capacity):
            size += self.row_size[j] * sizeof(int32_t)
        size += self.column_room * sizeof(DriftColumn) + self.width * sizeof(int32_t)
        size += (self.vocabulary.mask + 1) * 16  # a place is a pointer, a hash and a column
        size += self.capacity * (sizeof(void *) + sizeof(int32_t) + 4 * sizeof(double) + real)
        if self.window != NULL:
            size += self.window_size(self.window_stride)
        size += self.point_room * (5 * sizeof(int32_t) + 10 * sizeof(double))
        return object.__sizeof__(self) + size

    # --- threads -------------------------------------------------------------------------------
    # Nothing here lets another thread in but what runs the caller's own code; what the models do
    # between two calls does.

    cdef int check_holder(self) except -1:
        if self.holds and self.holder != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    cdef int check_reader(self) except -1:
        if self.reader != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    cpdef int hold(self) except -1:
        """Keep other threads out until `release`; RuntimeError where one of them has done so."""
        self.check_holder()
        self.holder = PyThread_get_thread_ident()
        self.holds += 1
        return 0

    def release(self):
        """Let other threads in again."""
        self.holds -= 1
        if self.holds == 0 and self.batch is not None:
            self.batch = None
            free(self.window)
            self.window = NULL
            self.window_stop = 0

    # --- reading a point -----------------------------------------------------------------------

    cdef int reserve_point(self, Py_ssize_t count) except -1:
        if count <= self.point_room:
            return 0
        count = max(count, 2 * self.point_room)
        self.read_names = <PyObject **>grown(self.read_names, count * sizeof(void *))
        self.own_names = <PyObject **>grown(self.own_names, count * sizeof(void *))
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

    cdef int begin_point(self) except -1:
        """Keep the point read before, to recognise it; until `end_point` there is no point."""
        self.check_holder()
        self.reader = PyThread_get_thread_ident()
        self.ids, self.last_ids = self.last_ids, self.ids
        self.values, self.last_values = self.last_values, self.values
        self.last_count = self.count if self.scored or self.filled else -1
        self.was_scored, self.was_filled = self.scored, self.filled
        self.last_norm2 = self.point_norm2
        self.count = self.read_size = self.n_unknown = 0
        self.plain = self.by_index = False
        self.point_row = -1
        self.serial += 1
        self.scored = self.filled = self.current = self.ordered = False
        return 0

    cdef bint end_point(self, double norm2) noexcept:
        """Fix the point's norm; False if it, or the kernel's value at it, is too large."""
        cdef double own
        cdef int exponent, count = self.count
        self.point_norm2 = norm2
        if not norm2 <= 1e300:
            return False
        if self.normalize:
            self.divisor = sqrt(norm2)
            self.point_scale = 1.0
            self.point_squared = 1.0 if norm2 > 0 else 0.0
        else:
            own = drift_power(norm2 + self.coef0, self.degree) if self.kind == DRIFT_POLYNOMIAL else norm2
            if not own <= 1e300:
                return False
            frexp(sqrt(norm2), &exponent)
            self.divisor = ldexp(1.0, exponent)
            self.point_scale = self.divisor
            self.point_squared = norm2
        if self.divisor == 0:
            self.divisor = 1.0
        if (
            count == self.last_count
            and norm2 == self.last_norm2
            and memcmp(self.ids, self.last_ids, count * sizeof(int32_t)) == 0
            and memcmp(self.values, self.last_values, count * sizeof(double)) == 0
        ):
            self.scored, self.filled = self.was_scored, self.was_filled
            self.ordered = True  # as the same point before was
        self.current = True
        return True

    cpdef read(self, x):
        """Take an example as the point that `score` and `self_kernel` are about.

        Raises
        ------
        FeatureError, FeatureTypeError
            If a value is no finite number. The supports stay as they are.
        """
        cdef dict features
        if isinstance(x, dict):
            features = x
            if self.is_same(features):
                self.check_holder()
                self.reader = PyThread_get_thread_ident()
                return
        elif type(x) is Row:
            self.read_row_of(x.rows, x.i)
            return
        else:
            features = as_dict(x)
        self.begin_point()
        try:
            if self.note_plain(features):
                self.look_up()
            else:
                self.note_any(features)
        except (TypeError, ValueError, OverflowError) as problem:
            raise culprit(features, problem) from None
        if not self.current:
            raise culprit(features)

    cdef bint is_same(self, dict features) except -1:
        """Whether this is the example read last, by its contents; notes its names if it is.

        Most names are the vocabulary's own, so that it takes little more than a walk to find out.
        """
        cdef Py_ssize_t position = 0
        cdef PyObject *name
        cdef PyObject *value
        cdef PyObject **own = self.own_names
        cdef PyObject **names = self.read_names
        cdef double *numbers = self.numbers
        cdef int k = 0
        if not (self.current and self.plain) or len(features) != self.read_size:
            return False
        while PyDict_Next(features, &position, &name, &value):
            if not drift_is_number(value, numbers[k]):
                return False
            if name != own[k]:
                if not drift_is_plain(name, value):
                    return False
                if own[k] != NULL:
                    if not drift_same(own[k], name):
                        return False
                elif drift_vocabulary_find(&self.vocabulary, name, drift_hash(name), NULL) >= 0:
                    return False
            names[k] = name
            k += 1
        return True

    cdef bint note_plain(self, dict features) except -1:
        """Note names, numbers and hashes, unless reading them may run the caller's own code.

        The passes prefetch: a name's hash, a value, and the name's place in the vocabulary are each
        a cache miss, and there are some eighty of each.
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
        self.plain = True
        return True

    cdef int look_up(self) except -1:
        """Make the point of the names, hashes and numbers noted."""
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef double v
        cdef int k, j, count = 0, n_unknown = 0
        for k in range(self.read_size):
            v = self.numbers[k]
            self.own_names[k] = NULL
            if v != v or v == 0.0:
                continue
            add_square(&norm2, v)
            j = drift_vocabulary_find(&self.vocabulary, self.read_names[k], self.hashes[k], &self.own_names[k])
            if j < 0:
                self.unknown[n_unknown] = k
                n_unknown += 1
            else:
                DRIFT_PREFETCH(&self.columns[j])
                self.ids[count] = j
                self.values[count] = v
                count += 1
        self.count, self.n_unknown = count, n_unknown
        self.end_point(norm2.total + norm2.lost)
        return 0

    cdef list note_any(self, dict features):
        """Make the point where the caller's own code may run; return what keeps its names alive."""
        cdef list kept = list(features.items())
        cdef list found = []
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef int k, j
        cdef long serial = self.serial
        for name, value in kept:  # of the store, nothing may change before the last of them
            number = PyFloat_AsDouble(value)
            found.append((name, number, hash(name), self.find(name)))
        if serial != self.serial:
            raise RuntimeError(IN_USE)
        self.reserve_point(len(kept))
        self.read_size = <int>len(kept)
        for k in range(self.read_size):
            self.read_names[k] = <PyObject *>(<tuple>kept[k])[0]
            self.numbers[k] = found[k][1]
            self.hashes[k] = found[k][2]
        for k in range(self.read_size):
            if self.numbers[k] != self.numbers[k] or self.numbers[k] == 0.0:
                continue
            add_square(&norm2, self.numbers[k])
            j = found[k][3]
            if j < 0:
                self.unknown[self.n_unknown] = k
                self.n_unknown += 1
            else:
                self.ids[self.count] = j
                self.values[self.count] = self.numbers[k]
                self.count += 1
        self.end_point(norm2.total + norm2.lost)
        return kept

    cdef int read_row(self, const int32_t *indices, const double *data, int size) except -1:
        """Read a row of an array; -1 with FeatureError if it cannot be learnt."""
        cdef double v
        cdef Sum norm2 = Sum(0.0, 0.0)
        cdef int k, j, read = 0, count = 0, n_unknown = 0
        self.begin_point()
        self.reserve_point(size)
        self.by_index = True
        for k in range(size):
            v = data[k]
            if v != v or v == 0.0:
                continue
            add_square(&norm2, v)
            if self.column_of != NULL:
                j = self.column_of[indices[k]]
            else:
                j = self.find(indices[k])
            self.indices[read] = indices[k]
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
        self.read_size, self.count, self.n_unknown = read, count, n_unknown
        if not self.end_point(norm2.total + norm2.lost):
            raise culprit({indices[k]: data[k] for k in range(size)})
        return 0

    cdef int read_row_of(self, rows, int i) except -1:
        """Read a row of a `drift.models._frames.Rows`."""
        cdef Py_buffer indptr, indices, data
        cdef int64_t start, stop
        self.index(rows.width)
        PyObject_GetBuffer(rows.indptr, &indptr, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows.indices, &indices, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows.data, &data, PyBUF_SIMPLE)
        start, stop = (<int64_t *>indptr.buf)[i], (<int64_t *>indptr.buf)[i + 1]
        try:
            self.read_row(<int32_t *>indices.buf + start, <double *>data.buf + start, <int>(stop - start))
        finally:
            PyBuffer_Release(&indptr); PyBuffer_Release(&indices); PyBuffer_Release(&data)
        self.note_row(rows, i)
        return 0

    cdef int note_row(self, rows, int i) noexcept:
        """Note that the point is a row of a batch."""
        if self.holds:
            if rows is not self.batch:
                self.batch = rows
                self.last_row = i
                self.window_stop = 0
            self.point_row = i
        return 0

    def read_support(self, int slot):
        """Take a support as the point."""
        cdef int k
        self.begin_point()
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
        self.point_norm2 = -1.0  # equal to that of no example

    # --- scoring the point ---------------------------------------------------------------------

    cdef void sort_point(self) noexcept:
        """Order the point by column, so that the order of its features does not matter."""
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

    cdef int compute_dots(self) except -1:
        """Fill `work` with the inner products of the point and every slot, both as scaled."""
        cdef int n = self.padded()
        cdef const void *ready = self.ready(n) if self.point_row >= 0 else NULL
        self.sort_point()
        if self.wide:
            drift_dots_double(self.columns, self.sorted_ids, self.sorted_values, self.count, self.work, n, ready, self.stale, self.n_stale)
        else:
            drift_dots_float(self.columns, self.sorted_ids, self.sorted_values, self.count, self.work, n, ready, self.stale, self.n_stale)
        return n

    # Where rows have many dense columns, the one loop waits for memory: each row sees all of them. A
    # window of rows sees a patch of them after the other, and has the same sums, bit by bit.

    cdef const void *ready(self, int n) except? NULL:
        """Dense columns' share of the point's inner products, if rows are scored one after the other."""
        cdef int i = self.point_row, gap = i - self.last_row, real = sizeof(double) if self.wide else sizeof(float)
        if n < LEAST_SLOTS or <Py_ssize_t>self.count * n * real < LEAST_DENSE:
            return NULL
        if gap:
            self.streak = self.streak + (1.0 / gap - self.streak) / 8.0 if gap > 0 else 0.0
            self.last_row = i
        if not self.window_start <= i < self.window_stop:
            self.window_stop = 0
            if (
                self.streak < 0.5
                or self.count > DRIFT_CHUNK
                or <Py_ssize_t>self.n_dense() * n * real < LEAST_DENSE
            ):
                return NULL
            self.open_window(n)
        return <char *>self.window + <Py_ssize_t>(i - self.window_start) * self.window_stride * real

    cdef int n_dense(self) noexcept:
        cdef int k, count = 0
        for k in range(self.count):
            count += drift_is_dense(&self.columns[self.ids[k]])
        return count

    cdef Py_ssize_t window_size(self, int stride) noexcept:
        cdef Py_ssize_t row = stride * (sizeof(double) if self.wide else sizeof(float))
        return max(min(WINDOW * row, LARGEST_WINDOW) // row, 1) * row

    cdef int open_window(self, int n) except -1:
        """Sum the dense columns of the point, a row of a batch, and of the rows behind it."""
        cdef int first = self.point_row, points = 0, real = sizeof(double) if self.wide else sizeof(float)
        cdef int starts[WINDOW]
        cdef int counts[WINDOW]
        cdef Py_ssize_t end = 0, most
        cdef const void **dense = NULL
        cdef char *weight = NULL
        rows = self.batch
        most = min(self.window_size(self.capacity) // (self.capacity * real), len(rows) - first, n // 64)
        try:
            while points < most and self.count <= DRIFT_CHUNK:  # as the first row is
                self.sort_point()
                dense = <const void **>grown(dense, (end + self.count + 4) * sizeof(void *))
                weight = <char *>grown(weight, (end + self.count + 4) * real)
                starts[points] = <int>end
                counts[points] = (drift_take_dense_double if self.wide else drift_take_dense_float)(
                    self.columns, self.sorted_ids, self.sorted_values, self.count, dense + end, weight + end * real
                )
                end += counts[points] + 3
                points += 1
                if points < most:
                    try:
                        self.read_row_of(rows, first + points)
                    except FeatureError:  # told when its turn comes
                        break
            self.window = grown(self.window, self.window_size(self.capacity))
            self.window_stride = self.capacity
            (drift_add_windows_double if self.wide else drift_add_windows_float)(
                self.window, self.window_stride, dense, weight, starts, counts, points, n
            )
        finally:
            free(dense)
            free(weight)
        self.window_start, self.window_stop, self.n_stale = first, first + points, 0
        self.read_row_of(rows, first)
        return 0

    cdef void mark_stale(self, int slot) noexcept:
        """Have a new support's slot summed again by the window's rows; of a free one nothing counts."""
        cdef int k, lanes = slot // DRIFT_LANES
        for k in range(self.n_stale):
            if self.stale[k] == lanes:
                return
        if self.n_stale == min(WINDOW, self.used // 64):
            self.window_stop = self.n_stale = 0
        elif self.window_stop:
            self.stale[self.n_stale] = lanes
            self.n_stale += 1

    cdef int compute_score(self) except -1:
        """Fill `last_score` for the point."""
        cdef int n
        if self.kind == DRIFT_LINEAR or self.kind == DRIFT_POLYNOMIAL:
            n = self.compute_dots()
            if self.wide:
                self.last_score = drift_score_double(self.weight, <double *>self.work, self.scale, self.point_scale, n, self.coef0, self.degree, self.tie, &self.last_rounding)
            else:
                self.last_score = drift_score_float(self.weight, <float *>self.work, self.scale, self.point_scale, n, self.coef0, self.degree, self.tie, &self.last_rounding)
        else:
            n = self.compute_row()
            self.last_score = drift_weighted_sum(self.weight, self.row, n, self.tie, &self.last_rounding)
        return 0

    cdef int compute_row(self) except -1:
        """Fill `row` with the kernel between the point and every slot; return their number."""
        cdef int n = self.padded()
        cdef list near
        if self.filled:
            return n
        self.compute_dots()
        if self.wide:
            drift_widen_double(self.row, <double *>self.work, self.scale, self.point_scale, n)
        else:
            drift_widen_float(self.row, <float *>self.work, self.scale, self.point_scale, n)
        if self.kind == DRIFT_LINEAR or self.kind == DRIFT_POLYNOMIAL:
            drift_polynomial(self.row, n, self.coef0, self.degree)
        elif self.kind == DRIFT_RBF:
            # |a|^2 + |b|^2 - 2 <a, b> cancels where both norms are large beside the distance.
            near = self.near_slots() if self.gamma * self.point_squared > self.far else []
            if self.wide:
                drift_rbf_exact(self.row, self.squared, self.point_squared, self.gamma, n)
            else:
                drift_rbf(self.row, self.squared, self.point_squared, self.gamma, n)
            for slot in near:
                self.row[<int>slot] = exp(-self.gamma * self.distance(slot))
        else:
            self.call_kernel()
        self.filled = True
        return n

    cdef list near_slots(self):
        """Slots whose squared distance, from the inner products in `row`, is lost in rounding."""
        cdef int slot
        cdef double sum, error = 2.0**-46 if self.wide else 2.0**-20
        cdef list near = []
        for slot in range(self.used):
            sum = self.squared[slot] + self.point_squared
            if self.gamma * (sum - 2.0 * self.row[slot] - error * sum) < 50.0:
                near.append(slot)
        return near

    cdef double distance(self, int slot) except -1.0:
        """Squared distance between the point and a support, feature by feature."""
        cdef int k
        cdef double own, other, sum
        cdef Sum unknown = Sum(0.0, 0.0)
        cdef set known = set()
        for k in range(self.n_unknown):
            add_square(&unknown, self.numbers[self.unknown[k]])
        sum = (unknown.total + unknown.lost) / (self.divisor / self.point_scale) ** 2
        for k in range(self.count):
            known.add(self.sorted_ids[k])
            own = self.sorted_values[k] * self.point_scale
            if not self.wide:
                own = <double><float>self.sorted_values[k] * self.point_scale
            other = self.get(&self.columns[self.sorted_ids[k]], slot) * self.scale[slot]
            sum += (own - other) ** 2
        for k in range(self.row_size[slot]):
            if self.rows[slot][k] not in known:
                sum += (self.get(&self.columns[self.rows[slot][k]], slot) * self.scale[slot]) ** 2
        return sum

    cdef int call_kernel(self) except -1:
        """Apply a kernel that is not ours to the inner products in `row`."""
        import numpy as np

        cdef int n = self.used
        cdef long serial = self.serial
        cdef Py_buffer view
        cdef bytes dots = (<char *>self.row)[:n * sizeof(double)]
        norms = np.frombuffer(bytearray((<char *>self.squared)[:n * sizeof(double)]))
        if self.free_slots:
            norms[self.free_slots] = 1.0  # a kernel need not have a value at norm 0
        result = self.kernel(np.frombuffer(dots), norms, self.point_squared)
        result = np.ascontiguousarray(result, dtype=np.float64)
        if result.shape != (n,):
            raise ParameterError(
                f"the kernel {self.kernel!r} gave an array of shape {result.shape} for {n} supports"
            )
        if serial != self.serial or n != self.used:
            raise RuntimeError(IN_USE)
        PyObject_GetBuffer(result, &view, PyBUF_SIMPLE)
        if n:
            memcpy(self.row, view.buf, n * sizeof(double))
        PyBuffer_Release(&view)
        for n in range(self.used, self.padded()):
            self.row[n] = 0.0
        return 0

    cpdef double score(self) except? -1.0:
        """Sum of coefficient * kernel over the supports, for the point; 0 within rounding of 0."""
        self.check_reader()
        if not self.scored:
            self.compute_score()
            if self.last_score - self.last_score != 0.0:
                raise self.overflow()
            self.scored = True
        return self.factor * self.last_score

    def score_of(self, x):
        """Read an example and return its score."""
        self.read(x)
        return self.score()

    def mistaken_score_of(self, x, double sign):
        """Read an example; where ``sign * score <= 0`` return its score, in `hold`, else None."""
        cdef double value
        self.read(x)
        value = self.score()
        if sign * value > 0.0:
            return None
        self.hold()
        return value

    def rounding(self):
        """Bound on the rounding error of the score taken last."""
        return fabs(self.factor) * self.last_rounding

    def fill_row(self, row):
        """Write the kernel between the point and each slot, free ones too; return the number of slots.

        `row` is a buffer of doubles, as long as there are slots or longer.
        """
        cdef Py_buffer view
        self.check_reader()
        self.compute_row()
        PyObject_GetBuffer(row, &view, PyBUF_WRITABLE)
        try:
            self.check_room(&view)
            if self.used:
                memcpy(view.buf, self.row, self.used * sizeof(double))
        finally:
            PyBuffer_Release(&view)
        return self.used

    def class_scores(self, weights, scores, roundings):
        """Score the point under several sets of coefficients, with one kernel row.

        `weights` holds as many rows as `scores` and `roundings` have entries, each as wide and with
        as many zeros behind the last slot as the width says: `capacity` or more. A score is 0 within
        rounding of 0; `roundings` gets the bound on each one's error.
        """
        cdef Py_buffer weight, score, rounding
        cdef int count
        cdef Py_ssize_t width
        cdef bint finite
        self.check_reader()
        PyObject_GetBuffer(weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(scores, &score, PyBUF_WRITABLE)
        PyObject_GetBuffer(roundings, &rounding, PyBUF_WRITABLE)
        try:
            count = <int>(score.len // <Py_ssize_t>sizeof(double))
            if rounding.len < score.len:
                raise ValueError(f"{count} classes and fewer roundings")
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            finite = self.score_classes(<double *>weight.buf, count, width, <double *>score.buf, <double *>rounding.buf)
        finally:
            PyBuffer_Release(&weight); PyBuffer_Release(&score); PyBuffer_Release(&rounding)
        if not finite:
            raise self.overflow()

    cdef bint score_classes(
        self, const double *weight, int count, Py_ssize_t width, double *score, double *rounding
    ) except -1:
        """Score the point under `count` sets of coefficients; False where that overflows."""
        cdef int c, n = self.compute_row()
        cdef bint finite = True
        if count and width < n:
            raise ValueError(f"{count} classes of {n} slots and room for {width}")
        for c in range(count):
            score[c] = drift_weighted_sum(weight + c * width, self.row, n, self.tie, rounding + c)
            finite &= score[c] - score[c] == 0.0
        return finite

    def scan_classes(self, rows, int start, targets, classes, rule):
        """Score rows under several classes until one might be an update; return its number.

        Without such a row the result is the number of rows.

        Parameters
        ----------
        rows
            A `drift.models._frames.Rows`.
        targets
            Number of each row's own class, int32; below 0 for a row at which to stop in any case.
        classes
            A `drift.models._names.Classes`.
        rule
            A `drift.models._names.Rule`.
        """
        cdef Py_buffer target, weight, factor
        cdef int i, stop = <int>len(rows), count = <int>len(classes.factors)
        cdef Py_ssize_t width
        cdef double threshold = rule.threshold
        cdef bint rivals = rule.rivals, wary = rule.wary
        cdef double *scores = <double *>grown(NULL, 2 * count * sizeof(double))
        PyObject_GetBuffer(targets, &target, PyBUF_SIMPLE)
        PyObject_GetBuffer(classes.weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(classes.factors, &factor, PyBUF_SIMPLE)
        try:
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            for i in range(start, stop):
                self.read_row_of(rows, i)
                if not (
                    self.score_classes(<double *>weight.buf, count, width, scores, scores + count)
                    and goes_by(scores, scores + count, <double *>factor.buf, count, (<int32_t *>target.buf)[i], threshold, rivals)
                    and not (wary and self.may_be_held())
                ):
                    return i
            return stop
        finally:
            PyBuffer_Release(&target); PyBuffer_Release(&weight); PyBuffer_Release(&factor)
            free(scores)

    cdef bint may_be_held(self) noexcept:
        """Whether a support may be the point, whose kernel row was just made."""
        cdef int slot
        cdef double dot, own = self.point_squared
        for slot in range(self.used):
            dot = (<double *>self.work)[slot] if self.wide else (<float *>self.work)[slot]
            dot *= self.scale[slot] * self.point_scale
            if self.squared[slot] + own - 2.0 * dot <= 2.0**-16 * own:
                return True
        return False

    def vote(self, row, slots, signs, survived, bint averaged):
        """Score a point under all prefixes of an expansion; return their vote and the last score.

        Parameters
        ----------
        row
            Kernel between the point and each slot, as `fill_row` makes it.
        slots
            Slots of the supports in their order, int32; None where those are 0, 1, 2, ...
        signs
            Coefficients of the supports, doubles.
        survived
            Weight of each prefix's vote, that of none first.
        averaged
            A prefix votes with its score instead of its sign.
        """
        cdef Py_buffer kernel, slot, sign, weight
        cdef Py_ssize_t k, s, n = len(signs)
        cdef double term, sum = 0.0, size = 0.0, value = 0.0, votes = 0.0
        PyObject_GetBuffer(row, &kernel, PyBUF_SIMPLE)
        PyObject_GetBuffer(slots if slots is not None else b"", &slot, PyBUF_SIMPLE)
        PyObject_GetBuffer(signs, &sign, PyBUF_SIMPLE)
        PyObject_GetBuffer(survived, &weight, PyBUF_SIMPLE)
        try:
            if (
                sign.len != n * <Py_ssize_t>sizeof(double)
                or weight.len != (n + 1) * <Py_ssize_t>sizeof(double)
                or (slots is not None and slot.len != n * <Py_ssize_t>sizeof(int32_t))
            ):
                raise ValueError(f"{n} supports, and not as many slots and votes")
            for k in range(n):
                s = (<int32_t *>slot.buf)[k] if slots is not None else k
                if not 0 <= s < kernel.len // <Py_ssize_t>sizeof(double):
                    raise ValueError(f"slot {s} is not in the row")
                term = (<double *>sign.buf)[k] * (<double *>kernel.buf)[s]
                sum += term
                size += fabs(term)
                value = 0.0 if fabs(sum) <= self.tie * size else sum
                if not averaged:
                    votes += (<double *>weight.buf)[k + 1] * ((value > 0.0) - (value < 0.0))
                else:
                    votes += (<double *>weight.buf)[k + 1] * value
        finally:
            PyBuffer_Release(&kernel); PyBuffer_Release(&slot); PyBuffer_Release(&sign); PyBuffer_Release(&weight)
        return votes, value

    cdef object overflow(self):
        return FeatureError(f"the kernel {self.kernel!r} overflows at this example: scale the features")

    def self_kernel(self):
        """Kernel between the point and itself."""
        cdef double norm2 = self.point_squared
        self.check_reader()
        if self.own_kernel is None or norm2 != self.own_norm2:  # of unit norm where it normalises
            self.own_kernel = float(self.kernel(norm2, norm2, norm2))
            self.own_norm2 = norm2
        return self.own_kernel

    def scan(self, rows, int start, signs, scores, double threshold):
        """Score rows until one has ``sign * score <= threshold``; return its number.

        `scores` gets the score of each row up to and with that one. Without such a row the result is
        the number of rows; the store is left in `hold` otherwise. `rows` is a `drift.models._frames.Rows`; `signs` are int8, or None to
        score all rows.
        """
        cdef Py_buffer indptr, indices, data, out, sign
        cdef int i = start, stop = <int>len(rows)
        cdef double value
        self.check_holder()
        self.index(rows.width)
        PyObject_GetBuffer(rows.indptr, &indptr, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows.indices, &indices, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows.data, &data, PyBUF_SIMPLE)
        PyObject_GetBuffer(scores, &out, PyBUF_WRITABLE)
        PyObject_GetBuffer(signs if signs is not None else b"", &sign, PyBUF_SIMPLE)
        try:
            while i < stop:
                self.read_row(
                    <int32_t *>indices.buf + (<int64_t *>indptr.buf)[i],
                    <double *>data.buf + (<int64_t *>indptr.buf)[i],
                    <int>((<int64_t *>indptr.buf)[i + 1] - (<int64_t *>indptr.buf)[i]),
                )
                self.note_row(rows, i)
                value = self.score()
                (<double *>out.buf)[i] = value
                if signs is not None and (<int8_t *>sign.buf)[i] * value <= threshold:
                    self.hold()
                    break
                i += 1
        finally:
            PyBuffer_Release(&indptr); PyBuffer_Release(&indices); PyBuffer_Release(&data)
            PyBuffer_Release(&out); PyBuffer_Release(&sign)
        return i

    # --- rows against tiles of supports, see _ahead.py -----------------------------------------

    @property
    def tile(self):
        """Number of supports side by side in a tile; 0 where the kernel is not ours."""
        return DRIFT_TILE if self.kind != DRIFT_CUSTOM else 0

    def fill_tiles(self, out, int width):
        """Write the supports, as scaled, into zeroed float32 tiles of `width` features each."""
        cdef Py_buffer view
        cdef int f
        cdef size_t stride = <size_t>width * DRIFT_TILE
        cdef DriftColumn *column
        self.check_holder()
        self.index(width)
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            self.check_tiles(&view, width)
            if self.column_of == NULL:
                raise ValueError(f"{width} features are too many")
            for f in range(width):
                if self.column_of[f] < 0:
                    continue
                column = &self.columns[self.column_of[f]]
                (drift_into_tiles_double if self.wide else drift_into_tiles_float)(
                    column, <float *>view.buf + f * DRIFT_TILE, stride, self.used
                )
        finally:
            PyBuffer_Release(&view)

    def refill_tile(self, out, int width, int slot):
        """Write one support into its place, whatever is there."""
        cdef Py_buffer view
        cdef int f, k
        cdef Py_ssize_t index
        cdef float *place
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            self.check_tiles(&view, width)
            place = <float *>view.buf + <size_t>(slot // DRIFT_TILE) * width * DRIFT_TILE + slot % DRIFT_TILE
            for f in range(width):
                place[f * DRIFT_TILE] = 0.0
            for k in range(self.row_size[slot]):
                index = index_below(self.names[self.rows[slot][k]], width)
                if index >= 0:
                    place[index * DRIFT_TILE] = <float>self.get(&self.columns[self.rows[slot][k]], slot)
        finally:
            PyBuffer_Release(&view)

    cdef int check_tiles(self, Py_buffer *view, Py_ssize_t width) except -1:
        cdef Py_ssize_t tiles = (self.used + DRIFT_TILE - 1) // DRIFT_TILE
        if view.len < tiles * width * DRIFT_TILE * <Py_ssize_t>sizeof(float):
            raise ValueError(f"{self.used} slots of {width} features and {view.len} bytes")
        return 0

    def tile_dots(self, tiles, int width, rows, dots, int start, int first, int stop):
        """Fill `dots` with the inner products of rows and the supports in the tiles `first` to `stop`.

        Parameters
        ----------
        rows
            Rows as scaled, from `start` on: where each begins (int64), the features (int32) and
            values (float32) of all of them, each filled up to a multiple of 8 with zeros.
        dots
            Float32, a line for each row, as wide as there are tiles.
        """
        cdef Py_buffer tile, begin, ids, values, out
        cdef int64_t *indptr
        cdef int i, t, count = <int>len(rows[0]) - 1
        cdef Py_ssize_t stride
        PyObject_GetBuffer(tiles, &tile, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[0], &begin, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[1], &ids, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[2], &values, PyBUF_SIMPLE)
        PyObject_GetBuffer(dots, &out, PyBUF_WRITABLE)
        try:
            indptr = <int64_t *>begin.buf
            stop = min(stop, (self.used + DRIFT_TILE - 1) // DRIFT_TILE)  # the rest is room
            stride = tile.len // (<Py_ssize_t>sizeof(float) * max(width, 1))
            for t in range(first, stop):
                for i in range(start, count):
                    drift_tile_dots(
                        <float *>out.buf + i * stride + t * DRIFT_TILE,
                        <float *>tile.buf + <size_t>t * width * DRIFT_TILE,
                        <int32_t *>ids.buf + indptr[i],
                        <float *>values.buf + indptr[i],
                        <int>(indptr[i + 1] - indptr[i]),
                    )
        finally:
            PyBuffer_Release(&tile); PyBuffer_Release(&begin); PyBuffer_Release(&ids)
            PyBuffer_Release(&values); PyBuffer_Release(&out)

    def screen_classes(self, dots, squares, int start, targets, classes, rule, double error):
        """Pass over rows of a block that surely are no update; return the number of the first other one.

        Parameters
        ----------
        dots
            As `tile_dots` makes them.
        squares
            Squared norm of each row, doubles.
        targets
            Number of each row's own class, int32; where it is below 0, that of the best class takes
            its place.
        classes, rule
            As for `scan_classes`.
        error
            Bound on the error of an inner product, as a share of the norms.
        """
        cdef Py_buffer dot, square, target, weight, factor
        cdef int i, c, best, n = self.padded(), stop = <int>len(squares), count = <int>len(classes.factors)
        cdef Py_ssize_t width, stride
        cdef double threshold = rule.threshold
        cdef bint rivals = rule.rivals, wary = rule.wary
        cdef double *errors = <double *>grown(NULL, (n + 2 * count) * sizeof(double))
        cdef double *scores = errors + n
        cdef int32_t *own
        self.check_holder()
        PyObject_GetBuffer(dots, &dot, PyBUF_SIMPLE)
        PyObject_GetBuffer(squares, &square, PyBUF_SIMPLE)
        PyObject_GetBuffer(targets, &target, PyBUF_WRITABLE)
        PyObject_GetBuffer(classes.weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(classes.factors, &factor, PyBUF_SIMPLE)
        try:
            own = <int32_t *>target.buf
            stride = <Py_ssize_t>dots.shape[1]
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            if stride < n or (count and width < n):
                raise ValueError(f"{n} slots and room for {stride} and {width}")
            for i in range(start, stop):
                self.begin_point()
                if not self.rough_row(<float *>dot.buf + i * stride, (<double *>square.buf)[i], errors, n, error):
                    return i
                if wary and self.near_one(<float *>dot.buf + i * stride):
                    return i
                best = 0
                for c in range(count):
                    drift_rough_score(<double *>weight.buf + c * width, self.row, errors, n, scores + c, scores + count + c)
                    if (<double *>factor.buf)[c] * scores[c] > (<double *>factor.buf)[best] * scores[best]:
                        best = c
                if own[i] >= 0:
                    best = own[i]
                if not goes_by(scores, scores + count, <double *>factor.buf, count, best, threshold, rivals):
                    return i
                own[i] = best
            return stop
        finally:
            PyBuffer_Release(&dot); PyBuffer_Release(&square); PyBuffer_Release(&target)
            PyBuffer_Release(&weight); PyBuffer_Release(&factor)
            free(errors)

    cdef bint rough_row(self, const float *dots, double norm2, double *errors, int n, double error) noexcept:
        """Fill `row` for a point with these inner products, and bounds on how far off it is."""
        cdef double rounding = 4.0 * self.tie + 2.0**-36
        if not self.end_point(norm2):
            return False
        self.current = False
        if self.kind != DRIFT_RBF:
            drift_rough_polynomial(
                self.row, errors, dots, self.scale, self.point_scale, n, self.coef0, self.degree, error, rounding
            )
            return True
        if self.gamma * self.point_squared > self.far:
            return False  # the one loop has other ways there
        drift_widen_float(self.row, dots, self.scale, self.point_scale, n)
        drift_rbf(self.row, self.squared, self.point_squared, self.gamma, n)
        drift_rough_rbf(
            self.row, errors, self.scale, self.point_scale, n, self.gamma, error,
            rounding + 2.0**-26 + 2.0**-40 * self.gamma * self.point_squared
        )
        return True

    cdef bint near_one(self, const float *dots) noexcept:
        """Whether a support may be the point, from inner products."""
        cdef int slot
        cdef double own = self.point_squared
        for slot in range(self.used):
            if self.squared[slot] + own - 2.0 * dots[slot] * self.scale[slot] * self.point_scale <= 2.0**-10 * own:
                return True
        return False

    # --- blocks of dense rows, see _blocks.py --------------------------------------------------

    @property
    def screens(self):
        """Whether `matrix` and `screen` serve this store: float32 columns under a kernel of ours."""
        return not self.wide and self.kind != DRIFT_CUSTOM

    @property
    def normalizes(self):
        """Whether rows lie in the columns at unit norm, else scaled by a power of two."""
        return self.normalize

    def matrix(self, out, int width):
        """Write the supports, as scaled, into a float32 matrix of `width` rows by `capacity`.

        Returns the number of sparse columns.
        """
        cdef Py_buffer view
        cdef int f, sparse = 0, n = self.capacity
        cdef DriftColumn *column
        self.check_holder()
        self.index(width)
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            if view.len < <Py_ssize_t>width * n * <Py_ssize_t>sizeof(float):
                raise ValueError(f"{width} columns of {n} slots and {view.len} bytes")
            for f in range(width):
                column = &self.columns[self.column_of[f]] if self.column_of[f] >= 0 else NULL
                drift_spread(column, <float *>view.buf + <Py_ssize_t>f * n, n)
                sparse += column != NULL and not drift_is_dense(column)
        finally:
            PyBuffer_Release(&view)
        return sparse

    def screen(self, dots, squares, signs, scores, int start, int stop, double threshold, double error):
        """Score rows by inner products from elsewhere until one might be an update; return its number.

        Parameters
        ----------
        dots
            Float32 inner products, as scaled, of each row with each of `capacity` slots.
        squares
            Squared norm of each row, doubles.
        signs
            Int8, or None to decide all rows.
        scores
            Gets the score of each row: rough, of the right sign, or NaN for a row whose score is
            too close to 0 or to the threshold to tell.
        error
            Bound on the error of an inner product.
        """
        cdef Py_buffer dot, square, sign, out
        cdef int i = start, slot, n = self.padded()
        cdef double value, bound, margin, largest = 0.0, weights = 0.0
        self.check_holder()
        for slot in range(self.used):
            largest = max(largest, self.squared[slot])
            weights += fabs(self.weight[slot])
        PyObject_GetBuffer(dots, &dot, PyBUF_SIMPLE)
        PyObject_GetBuffer(squares, &square, PyBUF_SIMPLE)
        PyObject_GetBuffer(scores, &out, PyBUF_WRITABLE)
        PyObject_GetBuffer(signs if signs is not None else b"", &sign, PyBUF_SIMPLE)
        try:
            while i < stop:
                self.begin_point()
                self.end_point((<double *>square.buf)[i])
                self.current = False
                value = self.rough_score(<float *>dot.buf + <Py_ssize_t>i * self.capacity, n, error, sqrt(largest), weights, &bound)
                margin = (<int8_t *>sign.buf)[i] * value if signs is not None else 0.0
                if not fabs(value) > bound or (signs is not None and not fabs(margin - threshold) > bound):
                    (<double *>out.buf)[i] = float("nan")
                    break
                (<double *>out.buf)[i] = value
                if signs is not None and margin <= threshold:
                    break
                i += 1
        finally:
            PyBuffer_Release(&dot); PyBuffer_Release(&square); PyBuffer_Release(&out)
            PyBuffer_Release(&sign)
        return i

    cdef double rough_score(
        self, float *dots, int n, double error, double largest, double weights, double *bound
    ) noexcept:
        """Score from the inner products of the point, and a bound on how far off it may be.

        `error` is that of an inner product as a share of the norms, `largest` the largest norm of
        a support and `weights` the sum of the coefficients' sizes.
        """
        cdef double value, slope = 0.0
        if self.kind == DRIFT_RBF:
            drift_widen_float(self.row, dots, self.scale, self.point_scale, n)
            drift_rbf(self.row, self.squared, self.point_squared, self.gamma, n)
            value = drift_weighted_sum(self.weight, self.row, n, self.tie, bound)
            slope = 2.0 * self.gamma * largest * sqrt(self.point_squared)
            if slope * error > 0.1 or self.gamma * self.point_squared > self.far:
                bound[0] = 1e308
                return value
            slope *= 1.1 * bound[0] / self.tie
        else:
            value = drift_score_float(self.weight, dots, self.scale, self.point_scale, n, self.coef0, self.degree, self.tie, bound)
            if self.normalize:
                slope = self.degree * drift_power(1.0 + error + self.coef0, self.degree - 1) * weights
                if fabs(value) > 4.0 * bound[0] + slope * error:  # no need to look closer
                    bound[0] = fabs(self.factor) * (4.0 * bound[0] + slope * error)
                    return self.factor * value
            slope = drift_slope(self.weight, dots, self.scale, self.point_scale, n, self.coef0, self.degree, error)
        bound[0] = fabs(self.factor) * (4.0 * bound[0] + slope * error)
        return self.factor * value

    # --- changing the supports -----------------------------------------------------------------

    def add(self, x, double coefficient):
        """Store `x`, the example read last, as a support; return its slot."""
        cdef int slot, k
        cdef list kept = None
        self.check_reader()
        if not self.current or (self.n_unknown and not self.by_index):
            self.read(x)  # the names that were noted of it may be gone
            if not (self.plain or self.by_index):
                self.begin_point()
                kept = self.note_any(x if isinstance(x, dict) else as_dict(x))
        if self.free_slots:
            slot = self.free_slots.pop()
        else:
            self.reserve_slots(self.used + 1)
            slot = self.used
            self.used += 1
        self.scored = self.filled = self.current = False
        self.rows[slot] = <int32_t *>grown(NULL, (self.count + self.n_unknown) * sizeof(int32_t))
        self.sort_point()
        for k in range(self.count):
            self.put(self.sorted_ids[k], slot, self.sorted_values[k])
        if self.n_unknown:
            self.put_unknown(slot)
        self.weight[slot] = coefficient / self.factor
        self.scale[slot] = self.point_scale
        self.squared[slot] = self.point_squared
        self.mark_stale(slot)
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
        cdef int k, j, size = self.row_size[slot], n_emptied = 0, largest = 0
        cdef bint dense
        cdef int32_t *row = self.rows[slot]
        self.check_holder()
        self.reserve_point(size)
        self.scored = self.filled = self.current = False
        for k in range(size):
            DRIFT_PREFETCH(&self.columns[row[k]])
        for k in range(size):
            drift_prefetch_head(&self.columns[row[k]])
        for k in range(size):
            j = row[k]
            drift_prefetch_rest(&self.columns[row[min(k + 4, size - 1)]])
            dense = drift_is_dense(&self.columns[j])
            if self.wide:
                drift_drop_double(&self.columns[j], slot, self.capacity)
            else:
                drift_drop_float(&self.columns[j], slot, self.capacity)
            if dense != drift_is_dense(&self.columns[j]):
                self.window_stop = 0
            if self.columns[j].size == 0:
                largest = max(largest, j)
                self.keys[n_emptied] = <uint64_t>j << 32
                n_emptied += 1
        drift_sort(self.keys, self.spare_keys, n_emptied, largest)
        for k in range(n_emptied):
            DRIFT_PREFETCH(<PyObject *>self.names[<int>(self.keys[k] >> 32)])
        for k in range(n_emptied - 1, -1, -1):  # the lowest is taken first
            self.free_column(<int>(self.keys[k] >> 32))
        free(row)
        self.rows[slot] = NULL
        self.row_size[slot] = 0
        self.weight[slot] = self.scale[slot] = self.squared[slot] = 0.0
        self.free_slots.append(slot)

    def coefficient(self, int slot):
        """Coefficient of a support."""
        return self.factor * self.weight[slot]

    def set_coefficients(self, values):
        """Set the coefficient of each slot, from a buffer as `add_coefficients` takes it."""
        cdef Py_buffer view
        cdef int slot
        PyObject_GetBuffer(values, &view, PyBUF_SIMPLE)
        try:
            self.check_room(&view)
            memcpy(self.weight, view.buf, self.used * sizeof(double))
        finally:
            PyBuffer_Release(&view)
        self.factor = 1.0
        for slot in self.free_slots:
            self.weight[slot] = 0.0
        self.scored = False

    def coefficients(self, out):
        """Write the coefficient of each slot, 0 of a free one; return the number of slots.

        `out` is a buffer of doubles, as long as there are slots or longer.
        """
        cdef Py_buffer view
        cdef int slot
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            self.check_room(&view)
            for slot in range(self.used):
                (<double *>view.buf)[slot] = self.factor * self.weight[slot]
        finally:
            PyBuffer_Release(&view)
        return self.used

    def add_coefficients(self, values):
        """Add a number to the coefficient of each slot; those of free slots do not count.

        What cancels to within rounding, the share `tie` of its terms, is 0: a coefficient of 1e-16
        that should be none would decide, alone, the sign of a score. `values` is a buffer of
        doubles, as long as there are slots or longer.
        """
        cdef Py_buffer view
        cdef int slot
        cdef double before, more, after
        PyObject_GetBuffer(values, &view, PyBUF_SIMPLE)
        try:
            self.check_room(&view)
            for slot in range(self.used):
                before = self.weight[slot]
                more = (<double *>view.buf)[slot] / self.factor
                after = before + more
                self.weight[slot] = 0.0 if fabs(after) <= self.tie * (fabs(before) + fabs(more)) else after
        finally:
            PyBuffer_Release(&view)
        for slot in self.free_slots:
            self.weight[slot] = 0.0
        self.scored = False

    cdef int check_room(self, Py_buffer *view) except -1:
        if view.len < <Py_ssize_t>(self.used * sizeof(double)):
            raise ValueError(f"{self.used} slots and room for {view.len // 8}")
        return 0

    def scale_all(self, double c):
        """Multiply every coefficient by `c`, in constant time."""
        cdef int slot
        self.factor *= c
        if not 1e-100 < fabs(self.factor) < 1e100:  # before the weights lose their meaning
            for slot in range(self.used):
                self.weight[slot] *= self.factor
            self.factor = 1.0
            self.scored = False

    def support(self, int slot):
        """Return a support as a dict, scaled as it is stored times its scale."""
        cdef int k
        cdef dict x = {}
        for k in range(self.row_size[slot]):
            j = self.rows[slot][k]
            x[self.names[j]] = self.get(&self.columns[j], slot) * self.scale[slot]
        return x

    # --- the inside ----------------------------------------------------------------------------

    cdef int padded(self) noexcept:
        return (self.used + DRIFT_LANES - 1) // DRIFT_LANES * DRIFT_LANES

    cdef double get(self, DriftColumn *column, int slot) noexcept:
        return drift_get_double(column, slot) if self.wide else drift_get_float(column, slot)

    cdef int put(self, int j, int slot, double value) except -1:
        """Write a scaled value into a slot, unless it vanishes beside the row's others."""
        cdef int failed
        cdef bint dense = drift_is_dense(&self.columns[j])
        if self.wide:
            failed = value != 0.0 and drift_put_double(&self.columns[j], slot, value, self.capacity)
        else:
            value = <float>value
            failed = value != 0.0 and drift_put_float(&self.columns[j], slot, value, self.capacity)
        if failed:
            raise MemoryError("the column store cannot grow")
        if dense != drift_is_dense(&self.columns[j]):
            self.window_stop = 0
        if value != 0.0:
            self.rows[slot][self.row_size[slot]] = j
            self.row_size[slot] += 1
        elif self.columns[j].size == 0:
            self.free_column(j)
        return 0

    cdef int make_dense(self, int j, bint dense) except -1:
        cdef DriftColumn *column = &self.columns[j]
        cdef int failed = 0
        if column.size and dense != drift_is_dense(column):
            if self.wide:
                failed = (drift_make_dense_double if dense else drift_make_sparse_double)(column, self.capacity)
            else:
                failed = (drift_make_dense_float if dense else drift_make_sparse_float)(column, self.capacity)
        if failed:
            raise MemoryError("the column store cannot grow")
        return 0

    cdef int find(self, name) except -2:
        """Column of a name, or -1."""
        return drift_vocabulary_find(&self.vocabulary, <PyObject *>name, hash(name), NULL)

    cdef int new_column(self, name) except -1:
        """Give a name a column."""
        cdef int j = self.free_columns.pop() if self.free_columns else self.append_column()
        return self.name_column(j, name)

    cdef int append_column(self) except -1:
        cdef int j = self.n_columns
        if j == self.column_room:
            self.columns = <DriftColumn *>grown(self.columns, max(64, 2 * j) * sizeof(DriftColumn))
            self.column_room = max(64, 2 * j)
        memset(&self.columns[j], 0, sizeof(DriftColumn))
        self.names.append(None)
        self.n_columns += 1
        return j

    cdef int name_column(self, int j, name) except -1:
        self.names[j] = name
        if drift_vocabulary_enter(&self.vocabulary, <PyObject *>name, hash(name), j):
            raise MemoryError("the column store cannot grow")
        self.note_index(name, j)
        return j

    cdef int note_index(self, name, int j) except -1:
        """Let the array column that a name stands for be looked up as column `j`."""
        cdef Py_ssize_t index
        if self.column_of != NULL:
            index = index_below(name, self.width)
            if index >= 0:
                self.column_of[index] = j
        return 0

    cdef int free_column(self, int j) except -1:
        name = self.names[j]
        self.note_index(name, -1)
        drift_vocabulary_leave(&self.vocabulary, <PyObject *>name, hash(name))
        self.names[j] = None
        self.free_columns.append(j)
        drift_clear(&self.columns[j])
        return 0

    cdef int index(self, Py_ssize_t width) except -1:
        """Prepare to look up rows of an array with `width` columns."""
        cdef Py_ssize_t index
        if width > INDEXED_WIDTH:
            free(self.column_of)
            self.column_of = NULL
            self.width = 0
        elif width > self.width:
            self.column_of = <int32_t *>grown(self.column_of, width * sizeof(int32_t))
            self.width = width
            memset(self.column_of, 0xFF, width * sizeof(int32_t))
            for j, name in enumerate(self.names):
                index = index_below(name, width) if self.columns[j].size else -1
                if index >= 0:
                    self.column_of[index] = j
        return 0

    cdef int reserve_slots(self, int count) except -1:
        """Make room for `count` slots, doubling up to the limit."""
        cdef int j, before = self.capacity, after = max(2 * before, count)
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), fresh
        if count <= before:
            return 0
        if self.limit is not None and self.limit >= count:
            after = min(after, self.limit)
        after = (after + DRIFT_LANES - 1) // DRIFT_LANES * DRIFT_LANES
        self.rows = <int32_t **>grown(self.rows, after * sizeof(void *))
        self.row_size = <int32_t *>grown(self.row_size, after * sizeof(int32_t))
        self.weight = <double *>aligned(self.weight, before, after, sizeof(double))
        self.scale = <double *>aligned(self.scale, before, after, sizeof(double))
        self.squared = <double *>aligned(self.squared, before, after, sizeof(double))
        self.row = <double *>aligned(self.row, before, after, sizeof(double))
        self.work_block = aligned(self.work_block, 0, after + DRIFT_LANES, real)
        self.work = <char *>self.work_block + DRIFT_LANES * real
        for j in range(self.n_columns):
            if not drift_is_dense(&self.columns[j]):
                continue
            if self.columns[j].size < after // 16:
                self.make_dense(j, False)
            elif (
                drift_widen_dense_double(&self.columns[j], before, after)
                if self.wide
                else drift_widen_dense_float(&self.columns[j], before, after)
            ):
                raise MemoryError("the column store cannot grow")
        fresh = after - before
        memset(self.rows + before, 0, fresh * sizeof(void *))
        memset(self.row_size + before, 0, fresh * sizeof(int32_t))
        self.capacity = after
        self.window_stop = 0
        return 0

    # --- state -----------------------------------------------------------------------------------

    def state(self):
        """Return all that a store is, as plain values and arrays, down to the order of its sums."""
        cdef int slot, k
        cdef Py_ssize_t size = 0
        cdef Py_buffer id_view, value_view
        self.check_holder()
        cdef int32_t *id
        cdef double *value
        sizes = array("i", [self.row_size[slot] for slot in range(self.used)])
        for slot in range(self.used):
            size += self.row_size[slot]
        ids, values = array("i", bytes(size * sizeof(int32_t))), array("d", bytes(size * sizeof(double)))
        PyObject_GetBuffer(ids, &id_view, PyBUF_WRITABLE)
        PyObject_GetBuffer(values, &value_view, PyBUF_WRITABLE)
        id, value = <int32_t *>id_view.buf, <double *>value_view.buf
        for slot in range(self.used):
            for k in range(self.row_size[slot]):
                id[0] = self.rows[slot][k]
                value[0] = self.get(&self.columns[id[0]], slot)
                id += 1
                value += 1
        PyBuffer_Release(&id_view); PyBuffer_Release(&value_view)
        return {
            "wide": self.wide,
            "factor": self.factor,
            "capacity": self.capacity,
            "names": list(self.names),
            "free_columns": list(self.free_columns),
            "dense": [j for j in range(self.n_columns) if drift_is_dense(&self.columns[j])],
            "free_slots": list(self.free_slots),
            "sizes": sizes,
            "ids": ids,
            "values": values,
            "weight": array("d", [self.weight[slot] for slot in range(self.used)]),
            "scale": array("d", [self.scale[slot] for slot in range(self.used)]),
            "squared": array("d", [self.squared[slot] for slot in range(self.used)]),
        }

    @cython.binding(True)  # or it cannot be a class method under the limited API
    @classmethod
    def restore(cls, kernel, limit, state):
        """Build the store that gave `state`."""
        cdef ColumnStore self = cls(kernel, state["wide"], limit)
        cdef int slot, j, k, size, position = 0
        self.factor = state["factor"]
        holes = set(state["free_columns"])
        self.reserve_slots(state["capacity"])
        for j, name in enumerate(state["names"]):
            self.append_column()
            if j not in holes:
                self.name_column(j, name)
        self.free_columns = list(state["free_columns"])
        self.free_slots = list(state["free_slots"])
        self.used = len(state["sizes"])
        dense = set(state["dense"])
        ids, values = state["ids"], state["values"]
        for slot, size in enumerate(state["sizes"]):
            self.rows[slot] = <int32_t *>grown(NULL, size * sizeof(int32_t))
            for k in range(size):
                self.put(ids[position], slot, values[position])
                position += 1
            self.weight[slot] = state["weight"][slot]
            self.scale[slot] = state["scale"][slot]
            self.squared[slot] = state["squared"][slot]
        for j in range(self.n_columns):
            self.make_dense(j, j in dense)
        return self
