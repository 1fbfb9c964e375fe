# Memory, buffers, stacks of integers and attributes: helpers of the files that are included later.

cdef str NO_MEMORY = "no memory for the supports of a model"


cdef void *grown(void *block, Py_ssize_t size) except NULL:
    """The block, resized to `size` bytes."""
    cdef void *result = realloc(block, size if size else 1)
    if result == NULL:
        raise MemoryError(NO_MEMORY)
    return result


cdef void *grown_aligned(void *block, Py_ssize_t before, Py_ssize_t after, Py_ssize_t size) except NULL:
    """The block, from `drift_grow`, resized from `before` to `after` items of `size` bytes; new ones are 0."""
    cdef void *result = drift_grow(block, before * size, after * size)
    if result == NULL:
        raise MemoryError(NO_MEMORY)
    return result


@cython.final
cdef class Buffer:
    """The memory of an array, released with this object."""

    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef inline Buffer buffer_of(values, int flags=PyBUF_SIMPLE):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    PyObject_GetBuffer(values, &buffer.view, flags)
    return buffer


cdef double *doubles(Buffer buffer, Py_ssize_t least) except? NULL:
    """The buffer's doubles; ValueError if there are fewer than `least`."""
    if buffer.view.len < least * <Py_ssize_t>sizeof(double):
        raise ValueError(f"a buffer of {buffer.view.len // 8} doubles, where {least} are needed")
    return <double *>buffer.view.buf


cdef struct Stack:
    # Of columns or slots.
    int32_t *items
    int size
    int room


cdef int reserve(Stack *stack, int more) except -1:
    """Make room for `more` items, so that `push` cannot fail."""
    cdef int room = stack.size + more
    if room > stack.room:
        room = max(room, 2 * stack.room)
        stack.items = <int32_t *>grown(stack.items, room * sizeof(int32_t))
        stack.room = room
    return 0


cdef inline void push(Stack *stack, int item) noexcept:
    stack.items[stack.size] = item
    stack.size += 1


cdef inline list listed(Stack *stack):
    """Its items, from bottom to top."""
    return [stack.items[k] for k in range(stack.size)]


cdef int fill(Stack *stack, values) except -1:
    """Replace the items."""
    stack.size = 0
    reserve(stack, len(values))
    for value in values:
        push(stack, value)
    return 0


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    int PyList_SetSlice(list, Py_ssize_t, Py_ssize_t, PyObject *) except -1
    dict PyObject_GenericGetDict(object, void *)


cdef inline dict attributes_of(part):
    """Return ``part.__dict__``, several times as fast."""
    return PyObject_GenericGetDict(part, NULL)
