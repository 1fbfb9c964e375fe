# How compiled code reads a value, and the rows of `drift.models._base.rows.Rows`; included by the store
# and the Tracker.
#
# The including file imports numpy as np, and cimports cython and what is used here of cpython.buffer,
# cpython.float, libc.stdint, libc.stdlib and libc.string.

from drift._values import number as checked_number

#: Types whose values are all numbers. `checked_number` would say the same of them, but slowly.
cdef frozenset NUMBER_TYPES = frozenset([
    bool, int, float, np.bool_, *[np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["Float"]]
])


cdef inline double double_of(value) except? -1.0:
    """A value of any type as a double; see `drift._values.number`."""
    return PyFloat_AsDouble(value) if type(value) in NUMBER_TYPES else checked_number(value)


@cython.final
cdef class RowsView:
    """The arrays of a `Rows`, released with this object, and the row taken last."""

    cdef int size  # number of rows
    cdef Py_ssize_t width
    cdef object names  # of the columns; None for their numbers
    cdef Py_buffer indptr, indices, values
    cdef bint is_sparse, direct  # direct: doubles, with each row's values one after another
    cdef double *copied  # a row that is not direct
    # The row: its values, and their columns, NULL for 0, 1, 2, ...
    cdef int count
    cdef const int32_t *columns
    cdef const double *numbers

    def __cinit__(self, rows):
        cdef Py_ssize_t item
        PyObject_GetBuffer(rows.values, &self.values, PyBUF_STRIDES)
        self.width, self.names, item = rows.width, rows.names, self.values.itemsize
        if rows.indptr is None:
            self.size = <int>self.values.shape[0]
            self.direct = item == 8 and self.values.strides[1] == item and self.values.strides[0] % item == 0 and <size_t>self.values.buf % 8 == 0
        else:
            PyObject_GetBuffer(rows.indptr, &self.indptr, PyBUF_SIMPLE)
            PyObject_GetBuffer(rows.indices, &self.indices, PyBUF_SIMPLE)
            self.size = <int>(self.indptr.len // <Py_ssize_t>sizeof(int64_t)) - 1
            self.is_sparse = self.direct = True
        if not self.direct:
            self.copied = <double *>malloc(max(self.width, 1) * sizeof(double))
            if self.copied == NULL:
                raise MemoryError("no memory for a row")

    def __dealloc__(self):
        PyBuffer_Release(&self.indptr); PyBuffer_Release(&self.indices); PyBuffer_Release(&self.values)
        free(self.copied)

    cdef void take(self, int i) noexcept:
        """Point `columns` and `numbers` to row `i`."""
        cdef int64_t start
        cdef Py_ssize_t k
        cdef float narrow
        cdef const char *cell
        if self.is_sparse:
            start = (<int64_t *>self.indptr.buf)[i]
            self.count = <int>((<int64_t *>self.indptr.buf)[i + 1] - start)
            self.columns = <int32_t *>self.indices.buf + start
            self.numbers = <double *>self.values.buf + start
            return
        self.count = <int>self.width
        cell = <char *>self.values.buf + i * self.values.strides[0]
        if self.direct:
            self.numbers = <double *>cell
            return
        for k in range(self.width):
            if self.values.itemsize == 8:
                memcpy(&self.copied[k], cell, sizeof(double))
            else:
                memcpy(&narrow, cell, sizeof(float))
                self.copied[k] = narrow
            cell += self.values.strides[1]
        self.numbers = self.copied

    cdef dict row(self, int i):
        """Take row `i`, and return it as a dict."""
        cdef int k, column
        cdef dict x = {}
        self.take(i)
        for k in range(self.count):
            column = self.columns[k] if self.columns != NULL else k
            x[column if self.names is None else self.names[column]] = self.numbers[k]
        return x


cdef inline RowsView view_of(rows):
    """The view that a `Rows` keeps."""
    view = rows.view
    if type(view) is not RowsView:  # none yet, or the view of another extension
        view = rows.view = RowsView(rows)
    return view
