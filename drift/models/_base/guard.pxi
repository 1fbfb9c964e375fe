# The compiled form of the guard in guard.py, which says what is rolled back: one thread at a time in a model, and
# rollback of a failed update. The store's steps call `enter`, `join`, then `finish` or `undo`; Python calls `update`.
#
# The including file includes memory.pxi, imports guard.py's names, and cimports what is used here of cpython and libc.

cdef struct SavedRegion:
    # The values of an array of one or two dimensions, or of one slot of its last axis. Restoring them
    # allocates nothing.
    Py_buffer view
    int slot  # -1: all slots
    char *values


cdef void copy_region(SavedRegion *region, bint back) noexcept:
    """Copy the array's values to the saved ones, or back."""
    cdef Py_buffer *view = &region.view
    cdef Py_ssize_t i, j, rows = view.shape[0] if view.ndim == 2 else 1, size = view.itemsize
    cdef Py_ssize_t first = max(region.slot, 0)
    cdef Py_ssize_t stop = first + 1 if region.slot >= 0 else view.shape[view.ndim - 1]
    cdef char *cell
    cdef char *value = region.values
    for i in range(rows):
        for j in range(first, stop):
            cell = <char *>view.buf + j * view.strides[view.ndim - 1]
            if view.ndim == 2:
                cell += i * view.strides[0]
            memcpy(cell if back else value, value if back else cell, size)
            value += size


cdef int VALUE = Kind.VALUE, PART = Kind.PART, CONTAINER = Kind.CONTAINER
cdef dict KINDS = {}  # the `Kind` of each type met so far


cdef inline int kind_of_value(value) except -1:
    """How the guard saves a value, a `Kind`."""
    if value is None or type(value) is int or type(value) is float or type(value) is tuple or type(value) is str:
        return VALUE  # the common case, without a look-up
    kind = KINDS.get(type(value))
    if kind is None:
        kind = KINDS[type(value)] = int(kind_of(type(value)))
    return kind


cdef inline copy_of(value):
    if type(value) is list:
        return (<list>value)[:]
    return (<dict>value).copy() if type(value) is dict else copied(value)


cdef name_added(dict attributes, dict before):
    """A name that was not there before, or None; found without an allocation."""
    for name in attributes:
        if name not in before:
            return name
    return None


cdef inline int empty(list items) except -1:
    return PyList_SetSlice(items, 0, len(items), NULL) if items else 0  # faster than `clear`


@cython.final
cdef class Guard:
    """A lock for a model, with rollback of a failed update.

    No signal handler runs in its compiled code. So an interrupt comes before an update, after it, or
    during it, which rolls the update back. Several stores may share a guard.
    """

    cdef unsigned long owner  # the thread
    cdef int depth
    cdef bint updating
    # Both by address, so that one more part takes constant time.
    cdef dict parts  # pairs: the __dict__ of each part of the update, and a copy from before it
    cdef dict self_undoing  # objects that undo their own changes
    cdef list deferred  # calls for the end of the update
    cdef SavedRegion *saved
    cdef int n_saved, room

    def __cinit__(self):
        self.parts, self.self_undoing, self.deferred = {}, {}, []

    def __dealloc__(self):
        free(self.saved)

    cdef int check(self) except -1:
        if self.depth and self.owner != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    cpdef acquire(self):
        """Lock the model for this thread; RuntimeError if another thread has it. Reentrant."""
        self.check()
        self.owner = PyThread_get_thread_ident()
        self.depth += 1

    cpdef release(self):
        """Unlock, once for each `acquire`."""
        self.depth -= 1

    def run(self, method, *args, **kwargs):
        """Call a method under the lock."""
        self.acquire()
        try:
            return method(*args, **kwargs)
        finally:
            self.release()

    def update(self, part, change, *args):
        """Call a function that changes a part, under the lock; roll back if it raises.

        A nested update is part of the outermost one.
        """
        cdef bint outermost = self.enter()
        try:
            self.join(part)
            result = change(*args)
        except:
            self.undo(outermost)
            raise
        self.finish(outermost)
        return result

    cdef bint enter(self) except -1:
        """Start an update under the lock; False if it is nested.

        It must end with `finish`, or with `undo` if anything raises.
        """
        self.check()
        if self.updating:
            return False
        self.acquire()
        self.updating = True
        return True

    cdef leave(self):
        """End the update, done or undone: forget its log and unlock."""
        self.updating = False
        self.parts.clear(); self.self_undoing.clear(); empty(self.deferred)
        self.forget_saved()
        self.release()

    cpdef join(self, part):
        """Add a part, and the parts that it contains, to the current update."""
        cdef dict attributes = attributes_of(part)
        cdef dict before
        cdef int kind
        address = <size_t><void *>attributes
        if address in self.parts:
            return
        before = attributes.copy()
        self.parts[address] = (attributes, before)
        for name, value in attributes.items():
            kind = kind_of_value(value)
            if kind == VALUE:
                continue
            if kind == PART:
                self.join(value)
            elif kind == CONTAINER:
                if name not in part._not_copied:
                    before[name] = copy_of(value)
                if type(value) is list and value and kind_of_value((<list>value)[0]) == PART:
                    for item in <list>value:
                        self.join(item)
            else:
                self.join_undoing(getattr(value, "store", value))

    cdef join_undoing(self, owner):
        """Add an object that undoes its own changes to the current update."""
        address = <size_t><void *>owner
        if address not in self.self_undoing:
            owner.start()
            self.self_undoing[address] = owner

    def save(self, array, int slot=-1):
        """Save an array, or one slot of its last axis, for a rollback; `check_saved` says which."""
        cdef SavedRegion *region
        cdef Py_ssize_t size
        cdef int k
        if not self.updating:
            return
        for k in range(self.n_saved):
            region = &self.saved[k]
            if <object>region.view.obj is array and region.slot == slot:
                return
        if self.n_saved == self.room:
            self.saved = <SavedRegion *>grown(self.saved, (self.room + 16) * sizeof(SavedRegion))
            self.room += 16
        region = &self.saved[self.n_saved]
        PyObject_GetBuffer(array, &region.view, PyBUF_STRIDED | PyBUF_FORMAT)
        if not (  # what is surely good needs no call of Python
            1 <= region.view.ndim <= 2
            and slot < region.view.shape[region.view.ndim - 1]
            and strchr(region.view.format, b"O"[0]) == NULL
        ):
            try:
                check_saved(array, slot)
            except:
                PyBuffer_Release(&region.view)
                raise
        region.slot = slot
        size = region.view.len
        if slot >= 0:
            size //= region.view.shape[region.view.ndim - 1]
        region.values = <char *>malloc(max(size, 1))
        if region.values == NULL:
            PyBuffer_Release(&region.view)
            raise MemoryError(NO_MEMORY)
        copy_region(region, False)
        self.n_saved += 1

    cdef void forget_saved(self) noexcept:
        while self.n_saved:
            self.n_saved -= 1
            free(self.saved[self.n_saved].values)
            PyBuffer_Release(&self.saved[self.n_saved].view)

    def defer(self, call):
        """Call a function at the end of the current update, or now without one.

        It must be compiled code that cannot fail, because nothing undoes it.
        """
        if self.updating:
            self.deferred.append(call)
        else:
            call()

    cdef undo(self, bint outermost):
        """Roll the update back; a nested one is rolled back with the outermost."""
        cdef dict attributes, before
        cdef object name
        cdef int k
        if not outermost:
            return
        try:
            for owner in self.self_undoing.values():
                owner.undo()
            for k in range(self.n_saved - 1, -1, -1):
                copy_region(&self.saved[k], True)
            for attributes, before in self.parts.values():
                while (name := name_added(attributes, before)) is not None:
                    del attributes[name]
                attributes.update(before)
        finally:
            self.leave()

    cdef finish(self, bint outermost):
        """Finish the update, unless it is nested."""
        problem = None
        if not outermost:
            return
        try:
            for call in self.deferred:
                call()
            for owner in self.self_undoing.values():
                problem = owner.finish() or problem
        finally:
            self.leave()
        if problem is not None:
            raise problem

    def __reduce__(self):
        return Guard, ()  # a copy of a model is unlocked
