# The compiled form of `rows_to_check` and `numbered_objects` in rows.py.
#
# The including file imports rows.py's names, declares what is used here of plain_values.h, includes rows.pxi, and
# cimports what is used here of cpython and libc.

cdef int max_distinct = MAX_DISTINCT


cdef inline double sum_of_squares(dict x) except? -1.0:
    """Sum of an example's squared values, NaN left out; infinity if a name or value is not plain."""
    cdef Py_ssize_t position = 0
    cdef PyObject *name
    cdef PyObject *value
    cdef double v, squares = 0.0
    while PyDict_Next(x, &position, &name, &value):
        if not drift_is_plain(name, value):
            return INFINITY
        try:
            v = drift_number(value)
        except OverflowError:
            return INFINITY
        if v == v:
            squares += v * v
    return squares


def rows_to_check(rows, double largest):
    """Indices of the rows that a model might refuse; see the plain function."""
    cdef RowsView view = None
    cdef list found = []
    cdef int i, k, count = -1
    cdef double squares, bound = 0.0
    cdef bint small
    if type(rows) is Rows:
        view = view_of(rows)
    for i in range(<int>len(rows)):
        if view is not None:
            view.take(i)
            if view.count != count:  # `count` squares of at most `bound` have a sum of at most `largest`
                count = view.count
                bound = 0.999 * sqrt(largest / max(count, 1))
            small = True
            for k in range(count):
                small &= fabs(view.numbers[k]) <= bound
            if small:
                continue
            squares = 0.0
            for k in range(count):
                squares += view.numbers[k] * view.numbers[k] if view.numbers[k] == view.numbers[k] else 0.0
        else:
            x = rows[i]
            squares = sum_of_squares(x) if type(x) is dict else INFINITY
        if not squares <= largest:
            found.append(i)
    return found


def numbered_objects(list values):
    """Distinct objects among values and each value's number; see the plain function."""
    cdef list distinct = []
    cdef bytearray numbers = bytearray(len(values))
    cdef unsigned char *number = <unsigned char *>PyByteArray_AsString(numbers)
    cdef int i, k = 0, n = 0
    for i in range(<int>len(values)):
        value = values[i]
        if k == n or distinct[k] is not value:  # else as the one before
            k = 0
            while k < n and distinct[k] is not value:
                k += 1
        if k == n:
            if n == max_distinct:
                return None
            distinct.append(value)
            n += 1
        number[i] = <unsigned char>k
    return distinct, numbers
