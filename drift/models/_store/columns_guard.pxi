# The guard: one thread at a time in a model, and atomic updates.

cdef struct Place:
    # The saved values of an array of one or two dimensions, or of one slot of its last axis. Restoring
    # them allocates nothing.
    Py_buffer view
    int first, stop
    char *values


cdef void copy_place(Place *place, bint back) noexcept:
    cdef Py_buffer *view = &place.view
    cdef Py_ssize_t i, j, rows = view.shape[0] if view.ndim == 2 else 1, size = view.itemsize
    cdef char *cell
    cdef char *value = place.values
    for i in range(rows):
        for j in range(place.first, place.stop):
            cell = <char *>view.buf + j * view.strides[view.ndim - 1]
            if view.ndim == 2:
                cell += i * view.strides[0]
            memcpy(cell if back else value, value if back else cell, size)
            value += size


cdef inline int stored_kind(value) except -1:
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
    # Of the current update: pairs of a __dict__ and its content before, stores that log, and saved
    # arrays.
    cdef bint updating
    cdef list parts, stores, deferred
    cdef Place *places
    cdef int n_places, room

    def __cinit__(self):
        self.parts, self.stores, self.deferred = [], [], []

    def __dealloc__(self):
        free(self.places)

    cdef int check(self) except -1:
        if self.depth and self.owner != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    cpdef int acquire(self) except -1:
        """Lock the model for this thread; RuntimeError if another thread has it. Reentrant."""
        self.check()
        self.owner = PyThread_get_thread_ident()
        self.depth += 1
        return 0

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
        self.updating = False
        empty(self.parts); empty(self.stores); empty(self.deferred)
        self.forget_places()
        self.release()

    cpdef int join(self, part) except -1:
        """Add a part, and the parts that it contains, to the current update."""
        cdef dict content = attributes_of(part)
        cdef dict before
        cdef int kind
        for joined, _ in self.parts:
            if joined is content:
                return 0
        before = content.copy()
        self.parts.append((content, before))
        for name, value in content.items():
            kind = stored_kind(value)
            if kind == VALUE:
                continue
            if kind == PART:
                self.join(value)
            elif kind == CONTAINER:
                if name not in part._kept:
                    before[name] = copy_of(value)
                if type(value) is list and value and stored_kind((<list>value)[0]) == PART:
                    for one in <list>value:
                        self.join(one)
            elif value not in self.stores:
                value.start()
                self.stores.append(value)
        return 0

    def keep(self, array, int slot=-1):
        """Save an array, or one slot of its last axis, for a rollback."""
        cdef Place *place
        cdef int k
        if not self.updating:
            return
        for k in range(self.n_places):
            place = &self.places[k]
            if <object>place.view.obj is array and place.first == slot:
                return
        if self.n_places == self.room:
            self.places = <Place *>grown(self.places, (self.room + 16) * sizeof(Place))
            self.room += 16
        place = &self.places[self.n_places]
        PyObject_GetBuffer(array, &place.view, PyBUF_STRIDED)
        place.first = max(slot, 0)  # the whole array: 0, so that it also counts as a save of slot 0
        place.stop = slot + 1 if slot >= 0 else place.view.shape[place.view.ndim - 1]
        k = (place.stop - place.first) * (place.view.shape[0] if place.view.ndim == 2 else 1)
        place.values = <char *>malloc(max(k, 1) * place.view.itemsize)
        if place.values == NULL:
            PyBuffer_Release(&place.view)
            raise MemoryError
        copy_place(place, False)
        self.n_places += 1

    cdef void forget_places(self) noexcept:
        while self.n_places:
            self.n_places -= 1
            free(self.places[self.n_places].values)
            PyBuffer_Release(&self.places[self.n_places].view)

    def defer(self, call):
        """Call at the end of the current update, or now without one.

        The call must be compiled code that cannot fail: nothing undoes it.
        """
        if self.updating:
            self.deferred.append(call)
        else:
            call()

    cdef undo(self, bint outermost):
        cdef dict content, before
        cdef int k
        if not outermost:
            return
        try:
            for store in self.stores:
                store.undo()
            for k in range(self.n_places - 1, -1, -1):
                copy_place(&self.places[k], True)
            for content, before in self.parts:
                if len(content) != len(before):
                    for name in [name for name in content if name not in before]:
                        del content[name]
                content.update(before)
        finally:
            self.leave()

    cdef finish(self, bint outermost):
        problem = None
        if not outermost:
            return
        try:
            for call in self.deferred:
                call()
            for store in self.stores:
                problem = store.finish() or problem
        finally:
            self.leave()
        if problem is not None:
            raise problem

    def __reduce__(self):
        return Guard, ()  # a copy of a model is unlocked


cdef dict KINDS = {}
cdef int VALUE = Kind.VALUE, PART = Kind.PART, CONTAINER = Kind.CONTAINER
