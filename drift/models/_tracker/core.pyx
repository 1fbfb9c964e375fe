# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled tracker, with the contract of `reference.py`; read that one.

An update first takes the steps that may fail: it reads the example, reserves memory, adds names and the support. The
rest is arithmetic in C (`tracker.h`), which cannot fail and runs no signal handler.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AsString
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AsDouble
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from drift.models._base.examples import as_dict, refusal_of, in_order, index_of
from drift.models._base.guard import IN_USE
from drift.models._base.labels import check_class
from drift.models._base.rows import INDEXED_WIDTH, Row
from drift.models._store.built import Guard
from drift.models._store.constants import LANES
from drift.models._tracker import tables
from drift.models._tracker.check import check_state
from drift.models._tracker.layout import Shape, arrays_of, layout_of
from drift.models._tracker.names import hash_of, mix, number_of
from drift.models._tracker.room import check_room, no_room
from drift.models._tracker.tables import ARRAYS, DIMENSIONS, GROUPS, sizes_of
from drift.models._tracker.tickets import Snapshot, Tickets

include "../../__init__.py"  # the version that this is compiled from
include "native.pxi"
include "../_base/rows.pxi"
include "state.pxi"
include "scales.pxi"

#: Sizes of the dimensions of a tracker that has learnt nothing, but those of its parameters.
cdef dict LEAST = {"rows": 1, "classes": 2, "slots": 0, "inputs": 0, "hashed": 0, **tables.sizes_of(0, sparse=False, trees=0)}


cdef class TrackerCore:
    """A tracker's state and updates; `reference_core.TrackerCore` has the same parameters."""

    cdef readonly object plan, guard
    cdef readonly list classes
    cdef dict numbers  # of the classes
    cdef State data
    cdef Scale scale
    cdef readonly object tickets  # None unless labels come late
    cdef bint auto, in_use, predicted
    cdef uint64_t key  # of the point's ticket
    cdef int budget, free  # the free slot, on a full budget

    def __init__(self, plan, scale, seed, state=None):
        self.plan, self.guard = plan, Guard()
        self.auto, self.budget, self.free = scale == "auto", min(plan.budget, 2**31 - 2), -1
        if state is not None:
            self.restore(state)
            return
        self.tickets = Tickets() if plan.late else None
        self.classes, self.numbers = [], {}
        self.data = self.new_state(tables.sizes_of(0, sparse=scale == "sparse", trees=plan.trees * tables.TREES))
        self.scale = Sparse(self.data, 0) if scale == "sparse" else Dense(self.data, [])
        self.data.t.sparse = scale == "sparse"
        self.data.t.draws = seed % 2**64
        prior = tables.LATE_PRIOR if plan.late else tables.GATE_PRIOR
        self.data.array("gates")[:] = 1.0 / plan.n_members
        for covariance in self.data.array("covariances"):
            np.fill_diagonal(covariance, prior)
        self.data.array("maps")[:] = 1.0 / DRIFT_N_MAPS
        self.data.array("factors")[:] = 1.0
        self.data.t.sums.mean_loss, self.data.t.sums.mean_weight = 0.7, 1.0
        if self.data.t.forests:
            self.data.t.tree_forest.draws, self.data.t.context_tree_forest.draws = [mix((seed + k) % 2**64) for k in (1, 2)]
            self.data.t.tree_forest.renew = self.data.t.context_tree_forest.renew = tables.FEWEST

    cdef State new_state(self, dict room):
        """Memory of a new tracker."""
        cdef int k, n
        plan = self.plan
        fixed = {"members": plan.n_members, "kernel_members": plan.n_kernel_members, "kernels": len(plan.kernels)}
        state = State(LEAST | room | fixed)
        n = <int>len(plan.rates)
        for k in range(<int>fixed["kernels"]):
            state.t.widths[k] = plan.kernels[k]
        for k in range(<int>fixed["kernel_members"]):
            state.t.rates[k], state.t.retention[k] = plan.rates[k % n], 1.0 - <double>plan.forgetting[k % n]
        for k, walk in enumerate(tables.LATE_WALKS if plan.late else tables.GATE_WALKS):
            state.t.walks[k] = walk
        state.t.has_trees, state.t.largest_window = plan.trees, tables.window_of(self.budget)
        return state

    def __sizeof__(self):
        return object.__sizeof__(self) + self.data.size()

    # --- prediction --------------------------------------------------------------------------------

    cdef int acquire(self) except -1:
        """Exclude other threads and reentrant calls until `release`."""
        self.guard.acquire()
        if self.in_use:
            self.guard.release()
            raise RuntimeError(IN_USE)
        self.in_use = True
        return 0

    cdef int release(self) except -1:
        self.in_use = False
        self.guard.release()
        return 0

    cdef int read_point(self, x, RowsView view=None, int i=0, name=True) except -1:
        """Read an example, or a row of a batch, into the point; FeatureError changes nothing."""
        cdef bint same
        cdef uint64_t key
        cdef bytes ticket
        if type(x) is Row:
            same = self.scale.read(None, view_of(x.rows), x.i)
        else:
            same = self.scale.read(x, view, i)
        self.predicted = self.predicted and same
        if self.tickets is not None:
            key = self.key_of(name)
            if same and key != self.key:  # equal to the last example, but another prediction
                self.scale.make_point()
                same = self.predicted = False
            self.key = key
            ticket = self.tickets.last_ticket(self.key)
            if ticket is not None and not same:  # another example was read since, or the tracker restored
                self.use_context(ticket)
        return 0

    cdef uint64_t key_of(self, name) except? 0:
        """Key of a ticket: of its name, or with a bool of the example's content."""
        cdef uint64_t key
        if name is True or name is False:
            return self.scale.key()
        if not drift_is_plain_name(<PyObject *>name) or not hash_plain(name, &key):
            key = <uint64_t>hash_of(name)
        return key

    cdef int predict_point(self) noexcept:
        if not self.predicted:
            drift_predict(&self.data.t)
            self.predicted = True
        return self.data.t.prediction

    cdef int issue_ticket(self) except -1:
        """Keep one ticket of the example, however often it is predicted in a row."""
        cdef DriftTracker *t = &self.data.t
        cdef int head[2]
        cdef int k, n = t.n_rows * t.members
        cdef float *numbers
        if self.tickets is None or self.tickets.last_ticket(self.key) is not None:
            return 0
        head[0] = t.n_rows
        head[1] = min(t.n_context // DRIFT_CONTEXT_INPUTS, <int>len(self.scale.names)) * DRIFT_N_HORIZONS  # new names have none
        ticket = PyBytes_FromStringAndSize(NULL, sizeof(head) + (n + head[1]) * sizeof(float))
        memcpy(PyBytes_AsString(ticket), head, sizeof(head))
        numbers = <float *>(PyBytes_AsString(ticket) + sizeof(head))
        for k in range(n):
            numbers[k] = drift_float(t.scores[k])
        for k in range(head[1]):
            numbers[n + k] = <float>t.raw_deviations[k]
        self.tickets.put(self.key, ticket)
        self.scale.update_context()
        return 0

    cdef int use_context(self, bytes ticket) except -1:
        """Replace the point's context by the ticket's."""
        cdef const int *head = <const int *>PyBytes_AsString(ticket)
        self.scale.use_context(<const float *>(head + 2) + head[0] * self.data.t.members, head[1])
        self.predicted = False
        return 0

    cdef int evidence_of(self, bytes ticket) except -1:
        """Replace the point's context by the ticket's; return which scores gates and maps learn from."""
        cdef const int *head
        if ticket is None:
            return DRIFT_CURRENT_SCORES if self.tickets is None or not len(self.tickets) else DRIFT_NO_SCORES
        if ticket is not self.tickets.last_ticket(self.key):
            self.use_context(ticket)
        head = <const int *>PyBytes_AsString(ticket)
        drift_read_ticket(&self.data.t, <const float *>(head + 2), head[0])
        return DRIFT_TICKET_SCORES

    def read(self, x, ticket=True):
        """Read the example that `score` answers for; FeatureError changes nothing."""
        self.acquire()
        try:
            self.read_point(x, None, 0, ticket)
        finally:
            self.release()

    def score(self):
        """Return the number of the predicted class, -1 without any, and all probabilities."""
        cdef int c
        self.predict_point()
        self.issue_ticket()
        return self.data.t.prediction, [drift_probability(&self.data.t, c) for c in range(self.data.t.n_classes)]

    def predict(self, x, ticket=True):
        """Return the number of the predicted class; -1 without any."""
        self.acquire()
        try:
            return self.predict_example(x, None, 0, ticket)
        finally:
            self.release()

    cdef int predict_example(self, x, RowsView view, int i, ticket) except -2:
        self.read_point(x, view, i, ticket)
        self.predict_point()
        if ticket is not False:
            self.issue_ticket()
        return self.data.t.prediction

    def peek(self, x):
        """Return the result of `score`, and issue no ticket."""
        cdef DriftTracker *t = &self.data.t
        cdef int c
        self.acquire()
        try:
            self.read_point(x)
            self.predict_point()
            return t.prediction, [drift_probability(t, c) for c in range(t.n_classes)]
        finally:
            self.release()

    @property
    def sparse(self):
        """Whether rows are sparse."""
        return bool(self.data.t.sparse)

    @property
    def n_learnt(self):
        """Number of examples learnt."""
        return int(self.data.t.sums.learnt)

    # --- learning ----------------------------------------------------------------------------------

    def learn(self, x, y, double w, ticket=True):
        """Learn an example; return the number of the class predicted before."""
        self.acquire()
        try:
            return self.learn_example(x, None, 0, y, w, ticket)
        finally:
            self.release()

    cdef int learn_example(self, x, RowsView view, int i, y, double w, name) except -2:
        cdef int number = self.class_index(y), prediction, evidence = DRIFT_CURRENT_SCORES
        cdef bytes ticket = None
        self.read_point(x, view, i, name)
        if self.tickets is not None:
            ticket = None if name is False else self.tickets.find(self.key)
            evidence = self.evidence_of(ticket)
        prediction = self.predict_point()
        tickets = self.tickets
        self.update(y, number, w, evidence)
        if tickets is not None and self.tickets is tickets and name is not False:
            tickets.settle(self.key)
        return prediction

    def learn_rows(self, rows, list predictions, list labels):
        """Predict the rows, or examples, that lack a prediction, and learn them if there are labels."""
        cdef RowsView view = None if type(rows) is list else view_of(rows)
        cdef int i, number
        x = None
        self.acquire()
        try:
            for i in range(<int>len(predictions), <int>len(rows)):
                if view is None:
                    x = (<list>rows)[i]
                if labels is None:
                    number = self.predict_example(x, view, i, True)
                else:
                    number = self.learn_example(x, view, i, labels[i], 1.0, True)
                predictions.append(None if number < 0 else self.classes[number])
        finally:
            self.release()

    cdef int class_index(self, y) except -2:
        """Number of a class; -1 for a new one, LabelError for what cannot be one."""
        try:
            number = self.numbers.get(y)
            if number is not None:
                return number
        except TypeError:
            pass
        check_class(y)
        return -1

    cdef int update(self, y, int number, double w, int evidence) except -1:
        """Learn the example that was read and predicted."""
        cdef DriftTracker *t = &self.data.t
        cdef uint64_t draws = t.draws
        cdef bint new = number < 0, to_sparse = self.becomes_sparse()
        cdef list classes = self.classes
        cdef dict numbers = self.numbers
        cdef State state = None
        cdef Scale scale
        if new:
            number = t.n_classes
            classes, numbers = [*classes, y], {**numbers, y: number}
            self.reserve_rows(y, number + 1)
        t.inserted = t.evicted = t.nearest = -1
        self.reserve_windows()
        if to_sparse:
            state = self.sparse_state()
            scale = Sparse(state, state.t.names)
            tickets = None if self.tickets is None else self.tickets.emptied()
        else:
            self.scale.add_names()
            try:
                if drift_inserts(t, w * drift_loss(t, number)):
                    draws = self.insert()
            except BaseException:
                self.scale.drop_names()
                raise
        # Nothing fails below.
        self.classes, self.numbers = classes, numbers
        self.predicted = False
        if self.tickets is not None:
            self.tickets.last = None
        drift_learn(t, number, w, evidence)
        t.draws = draws
        if to_sparse:
            self.become_sparse(state, scale, tickets)
            return 0
        self.scale.learn(evidence != DRIFT_CURRENT_SCORES)
        if t.inserted >= 0:
            t.n_used = max(t.n_used, t.inserted + 1)
            self.free = t.evicted
        return 0

    cdef int reserve_rows(self, y, int n) except -1:
        """Reserve the rows of `n` classes, and half as many more than there are."""
        cdef int rows = drift_rows_of(n)
        if rows <= self.data.t.rows:
            return 0
        rows = max(rows, self.data.t.rows + self.data.t.rows // 2)
        try:
            self.data.reserve({"rows": rows, "classes": max(rows, 2), "trees": self.data.t.forests * tables.trees_of(n)})
        except MemoryError:
            by_rows = [self.data.array(name) for name, a in tables.ARRAYS.items() if a.shape[0] == "rows"]
            raise no_room(y, n, sum([a.nbytes // len(a) for a in by_rows])) from None
        return 0

    cdef int reserve_windows(self) except -1:
        """Reserve a row in each window of trees, and a quarter more than their largest, so that rows seldom move."""
        cdef DriftTracker *t = &self.data.t
        cdef int n = max(t.tree_window.first + t.tree_window.n, t.context_tree_window.first + t.context_tree_window.n)
        cdef int most = t.largest_window + t.largest_window // 4
        if t.forests and n >= t.window and t.window < most:
            n = min(max(2 * t.window, 64), most)
            self.data.reserve({"window": n, "context_window": n, "fitted": t.largest_window})
        return 0

    cdef uint64_t insert(self) except? 0:
        """Put the point into a free slot, and on a full budget choose a support to evict. Returns the state of the draws."""
        cdef DriftTracker *t = &self.data.t
        cdef uint64_t draws = t.draws
        cdef int slot = self.free if self.free >= 0 else t.n_used
        self.data.reserve_slots(slot + 1)
        if t.n_used - (self.free >= 0) == self.budget:
            draws = drift_choose_evicted(t, self.free, t.raw_numbers, t.standardised)
        if drift_supports_add(&t.supports, slot, t.numbers, t.values, t.n_values):
            t.evicted = -1
            raise MemoryError("no room for a support")
        t.inserted = slot
        return draws

    # --- from dense to sparse rows -----------------------------------------------------------------

    cdef bint becomes_sparse(self):
        """Whether rows are sparse from the next one on: they hold few of many names."""
        cdef DriftTracker *t = &self.data.t
        cdef Dense dense
        cdef double least, n = t.sums.examples + 1.0
        if not self.auto or t.sparse:
            return False
        dense = self.scale
        if len(dense.names) + len(dense.new_names) >= DRIFT_DENSE_NAMES:
            return True
        if dense.n_active + dense.n_new <= DRIFT_FEW_NAMES:
            return False
        least = DRIFT_SPARSE_SHARE * n  # values of a name, on average
        if dense.n_active + dense.n_new <= DRIFT_MANY_NAMES:
            least = min(least, DRIFT_SPARSE_VALUES)
        return t.sums.values + dense.n_present < least * (dense.n_active + dense.n_new)

    cdef State sparse_state(self):
        """Memory for sparse rows, with the features that half of the examples had."""
        cdef DriftTracker *t = &self.data.t
        cdef int k, n = <int>t.sums.examples
        cdef double least = DRIFT_COMMON_SHARE * n
        cdef dict common = {}
        if n >= DRIFT_FEW_EXAMPLES:
            common = {number_of(name): k for k, name in enumerate(self.scale.names) if t.features[k].present >= least}
        common = dict(sorted(common.items()))
        state = self.new_state({"rows": t.rows, "classes": t.classes, "slots": t.slots, "cells": 1 + DRIFT_HASH_SLOTS, "names": len(common)})
        state.reserve_slots(t.supports.capacity)
        state.array("common")[:] = list(common)
        state.array("features")[:] = self.data.array("features")[list(common.values())]
        state.array("factors")[:] = 1.0
        state.t.sparse = True
        return state

    cdef void become_sparse(self, State state, Scale scale, tickets) noexcept:
        """Switch to sparse rows: supports and weights of features are dropped with their scale."""
        cdef DriftTracker *t = &self.data.t
        cdef size_t gates = DRIFT_N_GATE_WALKS * t.members
        memcpy(state.t.gates, t.gates, gates * sizeof(double))
        memcpy(state.t.covariances, t.covariances, gates * t.members * sizeof(double))
        memcpy(state.t.maps, t.maps, DRIFT_N_MAPS * sizeof(double))
        memcpy(state.t.errors, t.errors, t.members * sizeof(double))
        memcpy(state.t.losses, t.losses, t.members * sizeof(double))
        state.t.sums[0] = t.sums[0]
        state.t.sums.squares = state.t.sums.examples = state.t.sums.values = state.t.sums.context_squares = 0.0
        state.t.n_classes, state.t.n_rows, state.t.draws = t.n_classes, t.n_rows, t.draws
        self.data, self.scale, self.free = state, scale, -1
        if self.tickets is not None:
            self.tickets = tickets  # the scores of the others are on another scale

    # --- contents ----------------------------------------------------------------------------------

    @property
    def n_supports(self):
        """Number of supports."""
        return self.data.t.n_used - (self.free >= 0)

    def record(self):
        """Return the gates' weights, and the members' mistakes and losses so far."""
        sums = self.data.t.sums
        arrays = {name: self.data.array(name).copy() for name in ("gates", "maps", "errors", "losses")}
        return arrays | {"total": sums.total, "sparse": bool(self.data.t.sparse)}

    def state(self):
        """Return the tracker's state as plain values and arrays."""
        return self.snapshot().state()

    def arrays(self):
        """Return copies of the state's arrays, by name."""
        return arrays_of(self.plan, self.state())

    def snapshot(self):
        """Return the state of now, to be read on any thread."""
        self.guard.acquire()
        try:
            return self.stored()
        finally:
            self.guard.release()

    cdef stored(self):
        cdef DriftTracker *t = &self.data.t
        names = self.scale.names
        n_names = t.names if t.sparse else len(names)
        windows = t.tree_window.n, t.context_tree_window.n
        drift_compact(t)
        shape = Shape(t.members, t.kernel_members, t.n_classes, t.n_used, n_names, bool(t.sparse), bool(t.forests), windows)
        stored = {
            "arrays": self.data.stored(layout_of(shape)), "slots": t.n_used, "values": self.data.n_values(), "free": self.free,
            "classes": list(self.classes), "names": list(names),
            "sparse": bool(t.sparse), "draws": t.draws, "windows": list(windows),
        }
        return Snapshot(shape, stored, None if self.tickets is None else self.tickets.copy())

    cdef int restore(self, state) except -1:
        """Restore what `state` returned; ValueError for any other."""
        cdef State data
        cdef int n_classes
        layout = check_state(self.plan, state)
        sizes, supports = layout.sizes, layout.supports(state["arrays"])
        inputs = max(sizes["names"], int(supports[0].max(initial=0)))
        slots = (sizes["slots"] + LANES - 1) // LANES * LANES
        window = max(sizes["window"], sizes["context_window"])
        windows = {"window": window, "context_window": window, "fitted": tables.window_of(self.budget) if window else 0}
        data = self.new_state(sizes | windows | {"slots": slots, "classes": max(sizes["rows"], 2), "inputs": inputs})
        data.restore_supports(*supports)
        data.restore(layout, state["arrays"])
        self.classes = list(state["classes"])
        self.numbers = {label: number for number, label in enumerate(self.classes)}
        n_classes = <int>len(self.classes)
        data.t.sparse, data.t.draws, data.t.n_classes, data.t.n_rows = state["sparse"], state["draws"], n_classes, drift_rows_of(n_classes)
        self.scale = Sparse(data, sizes["names"]) if state["sparse"] else Dense(data, list(state["names"]))
        data.t.tree_window.n, data.t.context_tree_window.n = state["windows"]
        self.data, self.free = data, state["free"]
        self.tickets = Tickets.restored(state["tickets"]) if self.plan.late else None
        return 0

    def supports(self):
        """Return the supports, by name; those of sparse rows by hash."""
        sizes, numbers, values = [array.tolist() for array in self.data.supports()]
        start, result = 0, []
        for slot, size in enumerate(sizes):
            names, start = numbers[start : start + size], start + size
            if slot != self.free:
                names = names if self.data.t.sparse else [self.scale.names[j] for j in names]
                result.append(dict(zip(names, values[start - size : start])))
        return result

