# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled tracker: the contract of `reference.py`, which is the one to read.

An update does first what may fail: it reads the example, makes room, enters names and the support. The rest is
arithmetic in C (`tracker.h`), in which nothing fails and no signal handler runs.
"""

from libc.stdint cimport int32_t, uint64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

import numpy as np

from drift.models._store.class_labels import check_class
from drift.models._store.guard import IN_USE
from drift.models._store.rows import Row
from drift.models._store.supports import Guard
from drift.models._tracker import tables
from drift.models._tracker.check import check_state
from drift.models._tracker.names import hash_of
from drift.models._tracker.room import no_room
from drift.models._tracker.tickets import Moment, Tickets

from drift.models._tracker.scales cimport Dense, Scale, Sparse
from drift.models._tracker.state cimport DriftTracker, State

include "../../__init__.py"  # the version that this is compiled from

cdef extern from "core.h":
    void drift_predict(DriftTracker *) nogil
    double drift_probability(const DriftTracker *, int) nogil
    double drift_loss(const DriftTracker *, int) nogil
    bint drift_inserts(const DriftTracker *, double) nogil
    uint64_t drift_choose(DriftTracker *, int, int32_t *, double *) nogil
    int drift_supports_add(void *, int, const int32_t *, const double *, int) nogil
    void drift_learn(DriftTracker *, int, double, int) nogil
    void drift_read_said(DriftTracker *, const float *, int) nogil
    enum: DRIFT_NOTHING, DRIFT_SAYS, DRIFT_SAID, DRIFT_BESIDE, DRIFT_N_HORIZONS
    int drift_rows_of(int) nogil
    enum: DRIFT_N_GATE_WALKS, DRIFT_N_MAPS
    enum: DRIFT_SLOTS, DRIFT_FEW_NAMES, DRIFT_MANY_NAMES, DRIFT_DENSE_NAMES, DRIFT_FEW_EXAMPLES
    double DRIFT_SPARSE_SHARE, DRIFT_SPARSE_VALUES, DRIFT_COMMON_SHARE


cdef class TrackerCore:
    """State of a tracker, and how it learns.

    Parameters
    ----------
    plan
        Its parameters.
    scale
        ``"auto"``, ``"dense"`` or ``"sparse"``.
    seed
        Of the draws, any integer.
    """

    cdef readonly object plan, guard
    cdef readonly list classes
    cdef dict numbers  # of the classes
    cdef State memory
    cdef Scale scale
    cdef readonly object tickets  # None where labels come at once
    cdef bint auto, busy, predicted
    cdef uint64_t key  # what the point's ticket is found by, where there are tickets
    cdef int budget, free  # slot that no support is in, once the budget is full

    def __init__(self, plan, scale, seed):
        self.plan, self.guard = plan, Guard()
        self.tickets = Tickets() if plan.late else None
        self.classes, self.numbers = [], {}
        self.auto, self.budget, self.free = scale == "auto", min(plan.budget, 2**31 - 2), -1
        self.memory = self.new_state({})
        self.scale = Sparse(self.memory, 0) if scale == "sparse" else Dense(self.memory, [])
        self.memory.t.sparse = scale == "sparse"
        self.memory.t.draws = seed % 2**64
        prior = tables.LATE_PRIOR if plan.late else tables.GATE_PRIOR
        self.memory.array("gates")[:] = 1.0 / plan.n_members
        for covariance in self.memory.array("covariances"):
            np.fill_diagonal(covariance, prior)
        self.memory.array("maps")[:] = 1.0 / DRIFT_N_MAPS
        self.memory.array("factors")[:] = 1.0
        self.memory.t.sums.mean_loss, self.memory.t.sums.mean_weight = 0.7, 1.0

    cdef State new_state(self, dict room):
        """Memory of a tracker with these parameters that knows nothing."""
        plan = self.plan
        least = {"rows": 1, "classes": 2, "slots": 0, "inputs": 0, "hashed": 0} | tables.sizes_of(0, pairs=False, sparse=False)
        own = {"members": plan.n_members, "experts": plan.n_experts, "kernels": len(plan.kernels)}
        state = State(least | room | own)
        state.array("widths")[:] = plan.kernels
        state.array("rates").reshape(-1, len(plan.rates))[:] = plan.rates
        state.array("kept").reshape(-1, len(plan.lost))[:] = plan.lost
        state.array("kept")[:] = 1.0 - state.array("kept")
        state.array("walks")[:] = tables.LATE_WALKS if plan.late else tables.GATE_WALKS
        return state

    def __sizeof__(self):
        return object.__sizeof__(self) + self.memory.size()

    # --- prediction --------------------------------------------------------------------------------

    cdef int enter(self) except -1:
        """Keep out other threads, and the caller's own code, until `leave`."""
        self.guard.hold()
        if self.busy:
            self.guard.release()
            raise RuntimeError(IN_USE)
        self.busy = True
        return 0

    cdef int leave(self) except -1:
        self.busy = False
        self.guard.release()
        return 0

    cdef int take(self, x) except -1:
        """Make an example the point; FeatureError changes nothing."""
        cdef bint same
        cdef bytes ticket
        if type(x) is Row:
            same = self.scale.take(x, None, x.rows, x.i)
        else:
            same = self.scale.take(x, x, None, 0)
        self.predicted = self.predicted and same
        if self.tickets is not None:
            self.key = self.scale.content()
            ticket = self.tickets.asked_for(self.key)
            if ticket is not None and not same:  # another was read since, or it was stored
                self.look_back(ticket)
        return 0

    cdef int predict_point(self) noexcept:
        if not self.predicted:
            drift_predict(&self.memory.t)
            self.predicted = True
        return self.memory.t.prediction

    cdef int note(self) except -1:
        """Keep a ticket of the example that was predicted, one however often it is asked for in a row."""
        cdef DriftTracker *t = &self.memory.t
        cdef int head[2]
        cdef int k, n = t.n_rows * t.members
        cdef float *numbers
        if self.tickets is None or self.tickets.asked_for(self.key) is not None:
            return 0
        head[0] = t.n_rows
        head[1] = min(t.n_context // DRIFT_BESIDE, <int>len(self.scale.names)) * DRIFT_N_HORIZONS  # new names have none
        ticket = PyBytes_FromStringAndSize(NULL, sizeof(head) + (n + head[1]) * sizeof(float))
        memcpy(PyBytes_AS_STRING(ticket), head, sizeof(head))
        numbers = <float *>(PyBytes_AS_STRING(ticket) + sizeof(head))
        for k in range(n):
            numbers[k] = <float>t.scores[k]
        for k in range(head[1]):
            numbers[n + k] = <float>t.back[k]
        self.tickets.put(self.key, ticket)
        self.scale.note()
        return 0

    cdef int look_back(self, bytes ticket) except -1:
        """Read the example in the context that it was predicted in."""
        cdef const int *head = <const int *>PyBytes_AS_STRING(ticket)
        self.scale.look_back(<const float *>(head + 2) + head[0] * self.memory.t.members, head[1])
        self.predicted = False
        return 0

    cdef int told_by(self, bytes ticket) except -1:
        """Read the example in the context that it was predicted in; return what gates and maps are told."""
        cdef const int *head
        if ticket is None:
            return DRIFT_SAYS if self.tickets is None or not len(self.tickets) else DRIFT_NOTHING
        if ticket is not self.tickets.asked_for(self.key):
            self.look_back(ticket)
        head = <const int *>PyBytes_AS_STRING(ticket)
        drift_read_said(&self.memory.t, <const float *>(head + 2), head[0])
        return DRIFT_SAID

    def read(self, x):
        """Take an example as the one that `score` is about; FeatureError changes nothing."""
        self.enter()
        try:
            self.take(x)
        finally:
            self.leave()

    def score(self):
        """Number of the class that is predicted, -1 before any was met, and each one's probability."""
        cdef int c
        self.predict_point()
        self.note()
        return self.memory.t.prediction, [drift_probability(&self.memory.t, c) for c in range(self.memory.t.known)]

    def predict(self, x, bint notes=True):
        """Return the number of the class that is predicted; -1 before anything was learnt."""
        cdef int prediction
        self.enter()
        try:
            self.take(x)
            prediction = self.predict_point()
            if notes:
                self.note()
            return prediction
        finally:
            self.leave()

    def peek(self, x):
        """Return what `score` does, and note nothing: what is learnt or noted later is the same without it."""
        cdef DriftTracker *t = &self.memory.t
        cdef int c
        self.enter()
        try:
            self.take(x)
            self.predict_point()
            return t.prediction, [drift_probability(t, c) for c in range(t.known)]
        finally:
            self.leave()

    @property
    def sparse(self):
        """Whether rows are sparse."""
        return bool(self.memory.t.sparse)

    @property
    def n_learnt(self):
        """Number of examples learnt."""
        return int(self.memory.t.sums.learnt)

    # --- learning ----------------------------------------------------------------------------------

    def learn(self, x, y, double w):
        """Learn an example; return the number of the class that was predicted before."""
        cdef int number, prediction, told = DRIFT_SAYS
        cdef bytes ticket = None
        self.enter()
        try:
            number = self.number_of(y)
            self.take(x)
            if self.tickets is not None:
                ticket = self.tickets.find(self.key)
                told = self.told_by(ticket)
            prediction = self.predict_point()
            tickets = self.tickets
            self.change(y, number, w, told)
            if ticket is not None and self.tickets is tickets:
                tickets.drop(self.key)
            return prediction
        finally:
            self.leave()

    def learn_rows(self, rows, list predictions, list labels):
        """Predict rows from the one on whose number is that of the predictions; learn them if there are labels."""
        cdef int i
        for i in range(<int>len(predictions), <int>len(rows)):
            x = Row(rows, i)
            number = self.predict(x) if labels is None else self.learn(x, labels[i], 1.0)
            predictions.append(None if number < 0 else self.classes[number])

    cdef int number_of(self, y) except -2:
        """Number of a class; -1 for a new one, LabelError for what is none."""
        try:
            number = self.numbers.get(y)
            if number is not None:
                return number
        except TypeError:
            pass
        check_class(y)
        return -1

    cdef int change(self, y, int number, double w, int told) except -1:
        """Learn the example read last, which was predicted."""
        cdef DriftTracker *t = &self.memory.t
        cdef uint64_t draws = t.draws
        cdef bint new = number < 0, turns = self.turns()
        cdef list classes = self.classes
        cdef dict numbers = self.numbers
        cdef State state = None
        cdef Scale scale
        if new:
            number = t.known
            classes, numbers = [*classes, y], {**numbers, y: number}
            self.reserve_rows(y, number + 1)
        t.inserted = t.evicted = t.nearest = -1
        if turns:
            state = self.sparse_state()
            scale = Sparse(state, state.t.names)
            tickets = Tickets()
        else:
            self.scale.enter()
            try:
                if drift_inserts(t, w * drift_loss(t, number)):
                    draws = self.insert()
            except BaseException:
                self.scale.leave()
                raise
        # From here on nothing fails.
        self.classes, self.numbers = classes, numbers
        self.predicted = False
        if self.tickets is not None:
            self.tickets.asked = None
        drift_learn(t, number, w, told)
        t.draws = draws
        if turns:
            self.turn(state, scale, tickets)
            return 0
        self.scale.learn(told != DRIFT_SAYS)
        if t.inserted >= 0:
            t.n_used = max(t.n_used, t.inserted + 1)
            self.free = t.evicted
        return 0

    cdef int reserve_rows(self, y, int n) except -1:
        """Make room for the rows of so many classes, and for half as many again."""
        cdef int rows = drift_rows_of(n)
        if rows <= self.memory.t.rows:
            return 0
        rows = max(rows, self.memory.t.rows + self.memory.t.rows // 2)
        try:
            self.memory.reserve({"rows": rows, "classes": max(rows, 2)})
        except MemoryError:
            held = [self.memory.array(name) for name, a in tables.ARRAYS.items() if a.shape[0] == "rows"]
            raise no_room(y, n, sum([a.nbytes // len(a) for a in held])) from None
        return 0

    cdef uint64_t insert(self) except? 0:
        """Put the point into a free slot; on a full budget choose a support to be evicted. Returns the state of the draws."""
        cdef DriftTracker *t = &self.memory.t
        cdef uint64_t draws = t.draws
        cdef int slot = self.free if self.free >= 0 else t.n_used
        self.memory.reserve_slots(slot + 1)
        if t.n_used - (self.free >= 0) == self.budget:
            draws = drift_choose(t, self.free, t.raw_numbers, t.standardised)
        if drift_supports_add(&t.supports, slot, t.numbers, t.values, t.n_values):
            t.evicted = -1
            raise MemoryError("no room for a support")
        t.inserted = slot
        return draws

    # --- from dense to sparse rows -----------------------------------------------------------------

    cdef bint turns(self):
        """Whether rows are sparse from the next one on."""
        cdef DriftTracker *t = &self.memory.t
        cdef Dense dense
        cdef double least, n = t.sums.examples + 1.0
        if not self.auto or t.sparse:
            return False
        dense = self.scale
        if len(dense.names) + len(dense.fresh) >= DRIFT_DENSE_NAMES:
            return True
        if dense.n_active + dense.n_new <= DRIFT_FEW_NAMES:
            return False
        least = DRIFT_SPARSE_SHARE * n  # values of a name, on average
        if dense.n_active + dense.n_new <= DRIFT_MANY_NAMES:
            least = min(least, DRIFT_SPARSE_VALUES)
        return t.sums.values + dense.n_present < least * (dense.n_active + dense.n_new)

    cdef State sparse_state(self):
        """Memory for sparse rows, in which are the features that many of not too few examples had."""
        cdef DriftTracker *t = &self.memory.t
        cdef int k, n = <int>t.sums.examples
        cdef double least = DRIFT_COMMON_SHARE * n
        cdef dict common = {}
        if n >= DRIFT_FEW_EXAMPLES:
            common = {hash_of(name) >> 33: k for k, name in enumerate(self.scale.names) if t.features[k].present >= least}
        common = dict(sorted(common.items()))
        state = self.new_state({"rows": t.rows, "classes": t.classes, "slots": t.slots, "cells": 1 + DRIFT_SLOTS, "names": len(common)})
        state.reserve_slots(t.supports.capacity)
        state.array("common")[:] = list(common)
        state.array("features")[:] = self.memory.array("features")[list(common.values())]
        state.array("factors")[:] = 1.0
        state.t.sparse = True
        return state

    cdef void turn(self, State state, Scale scale, tickets) noexcept:
        """Go over to sparse rows: supports and the weights of features are on another scale, and go."""
        cdef DriftTracker *t = &self.memory.t
        cdef size_t gates = DRIFT_N_GATE_WALKS * t.members
        memcpy(state.t.gates, t.gates, gates * sizeof(double))
        memcpy(state.t.covariances, t.covariances, gates * t.members * sizeof(double))
        memcpy(state.t.maps, t.maps, DRIFT_N_MAPS * sizeof(double))
        memcpy(state.t.errors, t.errors, t.members * sizeof(double))
        memcpy(state.t.losses, t.losses, t.members * sizeof(double))
        state.t.sums[0] = t.sums[0]
        state.t.sums.squares = state.t.sums.examples = state.t.sums.values = state.t.sums.context_squares = 0.0
        state.t.known, state.t.n_rows, state.t.draws = t.known, t.n_rows, t.draws
        self.memory, self.scale, self.free = state, scale, -1
        if self.tickets is not None:
            self.tickets = tickets  # of scores and examples on another scale

    # --- what there is -----------------------------------------------------------------------------

    @property
    def n_supports(self):
        """Number of supports held."""
        return self.memory.t.n_used - (self.free >= 0)

    def record(self):
        """Return what the members did so far: the gate's weights, their mistakes and losses."""
        sums = self.memory.t.sums
        found = {name: self.memory.array(name).copy() for name in ("gates", "maps", "errors", "losses")}
        return found | {"total": sums.total, "sparse": bool(self.memory.t.sparse)}

    def state(self):
        """Return all that a tracker is, as plain values and arrays."""
        return self.moment().state()

    def moment(self):
        """Return what gives the state as it is now, on any thread."""
        self.guard.hold()
        try:
            return Moment(self.stored(), None if self.tickets is None else self.tickets.copy())
        finally:
            self.guard.release()

    cdef dict stored(self):
        cdef DriftTracker *t = &self.memory.t
        names = self.scale.names
        pairs = None if t.sparse else (<Dense>self.scale).pairs
        used = {
            "rows": t.n_rows, "slots": t.n_used, "members": t.members, "experts": t.experts,
            **tables.sizes_of(t.names if t.sparse else len(names), pairs=bool(pairs), sparse=t.sparse),
        }
        return {
            "arrays": self.memory.stored(used), "supports": self.memory.supports(), "free": self.free,
            "classes": list(self.classes), "names": list(names), "pairs": pairs,
            "auto": self.auto, "sparse": bool(t.sparse), "draws": t.draws,
        }

    def restore(self, state):
        """Be the tracker that gave `state`; ValueError if that is none."""
        check_state(self.plan, state)
        cdef State own
        cdef int known = <int>len(state["classes"])
        arrays = state["arrays"]
        sizes = {d: n for name, a in arrays.items() for d, n in zip(tables.ARRAYS[name].shape, a.shape) if isinstance(d, str)}
        sizes |= tables.sizes_of(sizes["names"], pairs=bool(state["pairs"]), sparse=state["sparse"])
        sizes["classes"] = max(sizes["rows"], 2)
        sizes["inputs"] = max([sizes["names"], sizes["context_cells"]] + state["supports"]["sizes"].tolist())
        tickets = Tickets.restored(state["tickets"]) if self.plan.late else None
        own = self.new_state(sizes | {"slots": 0})
        own.restore_supports(state["supports"])
        own.restore(arrays)
        own.t.sparse, own.t.draws, own.t.known, own.t.n_rows = state["sparse"], state["draws"], known, drift_rows_of(known)
        names, classes = list(state["names"]), list(state["classes"])
        numbers = {label: number for number, label in enumerate(classes)}
        self.scale = Sparse(own, sizes["names"]) if state["sparse"] else Dense(own, names, state["pairs"])
        self.memory, self.free, self.auto, self.predicted = own, state["free"], state["auto"], False
        self.classes, self.numbers, self.tickets = classes, numbers, tickets

    def supports(self):
        """Return the supports, by name; those of sparse rows by hash."""
        found = self.memory.supports()
        start, result = 0, []
        for slot, size in enumerate(found["sizes"].tolist()):
            numbers = found["numbers"][start : start + size].tolist()
            values = found["values"][start : start + size].tolist()
            start += size
            if slot != self.free:
                names = numbers if self.memory.t.sparse else [self.scale.names[j] for j in numbers]
                result.append(dict(zip(names, values)))
        return result
