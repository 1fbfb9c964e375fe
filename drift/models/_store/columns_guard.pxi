# The guard: one thread at a time in a model, and atomic updates.

cdef struct Place:
    # A place of an array of one or two dimensions, a slot of its last axis or all of it, and what
    # was there: to put that back takes no memory.
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
        return VALUE  # most of them, without a look-up
    kind = KINDS.get(type(value))
    if kind is None:
        kind = KINDS[type(value)] = int(kind_of(type(value)))
    return kind


cdef inline copy_of(value):
    if type(value) is list:
        return (<list>value)[:]
    return (<dict>value).copy() if type(value) is dict else copied(value)


cdef inline int empty(list items) except -1:
    return PyList_SetSlice(items, 0, len(items), NULL) if items else 0  # which `clear` takes longer for


@cython.final
cdef class Guard:
    """Keeps other threads out of a model, and takes back an update that fails.

    What it does before and after is compiled code, in which no signal handler runs: an interrupt comes
    before an update, after it, or in the middle, and then nothing of the update is left. A guard
    may be that of several stores.
    """

    cdef unsigned long holder  # the thread
    cdef int holds
    # Of the update under way: pairs of a __dict__ and its content before, stores that log, and
    # places of arrays.
    cdef bint updating
    cdef list parts, stores, deferred
    cdef Place *places
    cdef int n_places, room

    def __cinit__(self):
        self.parts, self.stores, self.deferred = [], [], []

    def __dealloc__(self):
        free(self.places)

    cdef int check(self) except -1:
        if self.holds and self.holder != PyThread_get_thread_ident():
            raise RuntimeError(IN_USE)
        return 0

    cpdef int hold(self) except -1:
        """Keep other threads out until `release`; RuntimeError where one of them has done so."""
        self.check()
        self.holder = PyThread_get_thread_ident()
        self.holds += 1
        return 0

    cpdef release(self):
        """Let other threads in again; as often as `hold` was called."""
        self.holds -= 1

    def run(self, method, *args, **kwargs):
        """Call a method while other threads are kept out."""
        self.hold()
        try:
            return method(*args, **kwargs)
        finally:
            self.release()

    def update(self, part, change, *args):
        """Call what changes a part, other threads kept out; all is as before if that raises.

        Within another update it is a piece of that one.
        """
        cdef bint whole = self.enter()
        try:
            self.join(part)
            result = change(*args)
        except:
            self.undo(whole)
            raise
        self.finish(whole)
        return result

    cdef bint enter(self) except -1:
        """Begin an update, other threads kept out; False where it is a piece of one under way.

        It ends by `finish`, or by `undo` where anything raises that comes after this.
        """
        self.check()
        if self.updating:
            return False
        self.hold()
        self.updating = True
        return True

    cdef leave(self):
        self.updating = False
        empty(self.parts); empty(self.stores); empty(self.deferred)
        self.forget_places()
        self.release()

    cpdef int join(self, part) except -1:
        """Let the update under way change another part, and what that consists of."""
        cdef dict content = content_of(part)
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
                value.begin()
                self.stores.append(value)
        return 0

    def keep(self, array, int slot=-1):
        """Have an array, or its last axis at a slot, as it is if the update is undone."""
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
        place.first = max(slot, 0)
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
        """Call what is compiled and cannot fail at the end of the update; now, if there is none."""
        if self.updating:
            self.deferred.append(call)
        else:
            call()

    cdef undo(self, bint whole):
        cdef dict content, before
        cdef int k
        if not whole:
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

    cdef finish(self, bint whole):
        problem = None
        if not whole:
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
        return Guard, ()  # a copy of a model is nobody's yet


cdef dict KINDS = {}
cdef int VALUE = Kind.VALUE, PART = Kind.PART, CONTAINER = Kind.CONTAINER
