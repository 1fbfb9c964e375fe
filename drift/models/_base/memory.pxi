# Memory, buffers and attributes: helpers of compiled code.
#
# The including file cimports cython and what is used here of cpython.buffer, cpython.object, libc.stdlib and libc.string.

cdef str NO_MEMORY = "no memory for a model"


cdef void *grown(void *block, Py_ssize_t size) except NULL:
    """The block, resized to `size` bytes."""
    cdef void *result = realloc(block, size if size else 1)
    if result == NULL:
        raise MemoryError(NO_MEMORY)
    return result


@cython.final
cdef class Buffer:
    """The memory of an array, released with this object."""

    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef inline Buffer buffer_of(values, const char *code, int flags=PyBUF_SIMPLE):
    """The memory of a contiguous array; ValueError if its items do not have the type `code`, as `struct` writes it."""
    cdef Buffer buffer = Buffer.__new__(Buffer)
    PyObject_GetBuffer(values, &buffer.view, flags | PyBUF_FORMAT)
    if strcmp(buffer.view.format, code) != 0:
        raise ValueError(
            f"a buffer with items of type {buffer.view.format.decode()!r}, where {code.decode()!r} is needed"
        )
    return buffer


cdef double *doubles(Buffer buffer, Py_ssize_t least) except? NULL:
    """The buffer's doubles; ValueError if there are fewer than `least`."""
    if buffer.view.len < least * <Py_ssize_t>sizeof(double):
        raise ValueError(f"a buffer of {buffer.view.len // 8} items, where {least} are needed")
    return <double *>buffer.view.buf


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    int PyList_SetSlice(list, Py_ssize_t, Py_ssize_t, PyObject *) except -1
    dict PyObject_GenericGetDict(object, void *)


cdef inline dict attributes_of(part):
    """Return ``part.__dict__``, several times as fast."""
    return PyObject_GenericGetDict(part, NULL)
