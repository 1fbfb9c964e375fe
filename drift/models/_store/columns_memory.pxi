# Aligned memory, and stacks of the numbers of columns or slots, for all layers.

cdef void *grown_aligned(void *block, Py_ssize_t before, Py_ssize_t after, Py_ssize_t size) except NULL:
    """The block, from `drift_grow`, resized from `before` to `after` items of `size` bytes; new ones are 0."""
    cdef void *result = drift_grow(block, before * size, after * size)
    if result == NULL:
        raise MemoryError(NO_MEMORY)
    return result


cdef struct Stack:
    # A stack of the numbers of columns or slots.
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
