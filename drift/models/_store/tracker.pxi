# The tracker: experts over one list of supports, linear ones, and the mixture of them all. One class,
# and so one file, longer than 300 lines.

cdef class TrackerCore(Scaling):
    """State of a tracker, and how it learns: the contract of `drift.models._tracker.plain`.

    What may fail of an update comes first and is taken back; the rest is arithmetic, in which no
    signal handler runs.
    """

    cdef readonly object plan
    cdef readonly list classes
    cdef dict numbers  # of the classes
    cdef DriftMixture m
    cdef double *block  # of the mixture's arrays by member
    cdef uint64_t draws
    # The experts: coefficients by row, expert and slot, times a factor.
    cdef int n_kernels, per_kernel, n_experts, budget, stride, row_room
    cdef float *coefficients
    cdef double *factors
    cdef double *rates
    cdef double *kept  # what an insertion leaves of a factor
    cdef double *widths  # by kernel
    cdef double *shares  # what a merge gives the nearest and the next, by kernel
    # The linear experts: by row, the bias and the slots, a cell of all four.
    cdef float *linear
    cdef int cells, cell_room  # in a row
    # The splines: by row, weights of the bias and the knots, then what is known of these.
    cdef float *splines
    cdef float *smaller  # the room that they get where they need less: no surfaces, or sparse rows
    cdef int knot_cells, knot_room, n_splines
    cdef double norms  # sum of |x|^2, the bias included
    cdef double[2] lags  # log loss by which the experts by gradient descent fell behind
    # By slot, of the point: inner products, distances, kernels.
    cdef double *row
    cdef float *dots
    cdef float *distance
    cdef float *kernels
    # Of a support: its columns, values and inner products.
    cdef double *support_values
    cdef int support_room
    cdef void *work_block

    def __cinit__(self, plan, scale, seed, bint wide=False):
        cdef int k, e, n = plan.n_members, scored = plan.n_members - DRIFT_GATES
        self.plan = plan
        self.guard = Guard()
        self.classes, self.names, self.numbers = [], [], {}
        self.auto, self.sparse = scale == "auto", scale == "sparse"
        self.draws = seed % 2**64
        self.budget = min(plan.budget, 2**31 - 2)
        self.n_kernels, self.n_experts, self.n_splines = <int>len(plan.kernels), plan.n_experts, plan.n_splines
        self.per_kernel = self.n_experts // self.n_kernels
        self.pairs = self.next_pairs = plan.pairs and not self.sparse
        self.factors = <double *>widened(NULL, 0, 3 * self.n_experts + 3 * self.n_kernels)
        self.rates = self.factors + self.n_experts
        self.kept = self.rates + self.n_experts
        self.widths = self.kept + self.n_experts
        self.shares = self.widths + self.n_kernels
        e = 0
        for k, width in enumerate(plan.kernels):
            self.widths[k] = width
            for rate, lost in zip(plan.rates, plan.lost):
                self.factors[e], self.rates[e], self.kept[e] = 1.0, rate, 1.0 - lost
                e += 1
        self.block = <double *>widened(NULL, 0, 6 * n + (DRIFT_GATES + scored + 2) * scored)
        self.m.weights = self.block
        self.m.majority, self.m.errors = self.block + n, self.block + 2 * n
        self.m.losses, self.m.path = self.block + 3 * n, self.block + 4 * n
        self.m.switches, self.m.gates = self.block + 5 * n, self.block + 6 * n
        self.m.covariance = self.m.gates + DRIFT_GATES * scored
        self.m.margin = self.m.covariance + scored * scored
        self.m.gain = self.m.margin + scored
        self.m.members, self.m.scored, self.m.share, self.m.vote = n, scored, plan.share, plan.vote
        for e in range(n):
            self.m.weights[e] = self.m.majority[e] = 1.0 / n
            self.m.path[e] = log(<double>n)
        for e in range(DRIFT_GATES * scored):
            self.m.gates[e] = 1.0 / scored
        for e in range(scored):
            self.m.covariance[e * scored + e] = SECOND_ORDER[0]
        for e in range(DRIFT_MAPS):
            self.m.maps[e] = MAPS[e]
        self.leave_out_splines()
        self.m.trust[0] = self.m.trust[1] = 0.5
        self.m.mean_loss, self.m.mean_of, self.m.rows = 0.7, 1.0, 1
        self.count_cells()
        self.reserve_rows(1)
        self.reserve_cells(self.sparse, 0, self.pairs)
        self.store = self.new_store(self.sparse, wide)

    def __dealloc__(self):
        free(self.block); free(self.m.late); free(self.factors); drift_free(self.linear); drift_free(self.splines)
        drift_free(self.coefficients); drift_free(self.smaller)
        free(self.m.score); free(self.m.softmax); free(self.m.p); free(self.m.mixed); free(self.m.next)
        free(self.m.choice); drift_free(self.row); drift_free(self.dots); drift_free(self.distance)
        drift_free(self.kernels); free(self.support_values); drift_free(self.work_block)

    def __sizeof__(self):  # but for `smaller`, which is short-lived
        cdef Py_ssize_t rows = self.row_room, n = self.m.members
        cdef Py_ssize_t size = 8 * (6 * n + (DRIFT_GATES + self.m.scored + 2) * self.m.scored + 3 * (self.n_experts + self.n_kernels))
        size += 0 if self.m.late == NULL else 16 * (n + 1)
        size += rows * self.class_size()
        size += 8 * ((3 * n + 1) * max(rows, 2) + n) + self.stride * (8 + 8 + 4 * self.n_kernels + 8)
        size += (48 if self.sparse else 76) * self.name_room + 52 * self.n_common + 16 * self.slot_room + 4 * self.table_room + 8 * self.support_room
        return object.__sizeof__(self) + size + 16 * (self.vocabulary.mask + 1)

    cdef ColumnStore new_store(self, bint sparse, bint wide):
        store = ColumnStore(Linear(normalize=sparse), wide, self.budget + 1, True)
        store.guard = self.guard
        return store

    cdef void count_cells(self) noexcept:
        """Count the cells of a row of the linear experts and of the splines: the bias, and the slots or knots."""
        self.cells = 1 + (DRIFT_SLOTS if self.sparse else self.n_names)
        self.knot_cells = self.knot_cells_of(self.sparse, self.n_names, self.pairs)

    cdef int knot_cells_of(self, bint sparse, int n_names, bint pairs) noexcept:
        return 1 if sparse or not self.n_splines else 1 + drift_n_knots(n_names, pairs)

    cdef int knot_room_of(self, bint sparse, int n_names, bint pairs) noexcept:
        """Room for these, and for some more names where they take little of it."""
        cdef int knots = self.knot_cells_of(sparse, n_names, pairs)
        return knots if pairs and n_names <= DRIFT_PAIRED else knots + drift_n_knots(n_names, False) // 4

    # --- room ----------------------------------------------------------------------------------

    cdef int reserve_rows(self, int rows) except -1:
        """Make room for the scores, coefficients and weights of so many rows."""
        cdef int n = self.m.members, before = self.row_room, classes
        cdef Py_ssize_t size = <Py_ssize_t>self.n_experts * self.stride
        if rows <= before:
            return 0
        rows = more_rows(rows, before, self.class_size())
        classes = max(rows, 2)
        self.m.score = <double *>grown(self.m.score, classes * n * sizeof(double))
        self.m.softmax = <double *>grown(self.m.softmax, classes * n * sizeof(double))
        self.m.p = <double *>grown(self.m.p, classes * n * sizeof(double))
        self.m.mixed = <double *>grown(self.m.mixed, classes * sizeof(double))
        self.m.next = <double *>grown(self.m.next, max(classes, n + 1) * sizeof(double))
        self.m.choice = <int *>grown(self.m.choice, n * sizeof(int))
        self.coefficients = <float *>restrided(self.coefficients, before, rows, size, size)
        size = <Py_ssize_t>self.cell_room * DRIFT_CELL_SIZE
        self.linear = <float *>restrided(self.linear, before, rows, size, size)
        size = <Py_ssize_t>self.knot_room * 2 * DRIFT_SPLINES
        self.splines = <float *>restrided(self.splines, before, rows, size, size)
        self.row_room = rows
        return 0

    cdef Py_ssize_t class_size(self) noexcept:
        """Bytes that a class takes: its coefficients, and its weights in the linear experts and splines."""
        return 4 * (<Py_ssize_t>self.n_experts * self.stride + DRIFT_CELL_SIZE * self.cell_room + 2 * DRIFT_SPLINES * self.knot_room)

    cdef int reserve_cells(self, bint sparse, int n_names, bint pairs) except -1:
        """Make room for the weights of so many dense names, or of all sparse ones, in the linear experts and splines."""
        cdef int cells = 1 + (DRIFT_SLOTS if sparse else n_names), rows = self.row_room
        cdef int room, knots = self.knot_room_of(sparse, n_names, pairs)
        if cells > self.cell_room:
            room = cells if sparse else cells + cells // 4
            self.linear = <float *>restrided(self.linear, rows, rows, self.cell_room * DRIFT_CELL_SIZE, room * DRIFT_CELL_SIZE)
            self.cell_room = room
        if sparse != self.sparse or (self.n_names and self.pairs and not pairs):
            drift_free(self.smaller)
            self.smaller = NULL
            self.smaller = <float *>aligned(NULL, 0, 2 * <Py_ssize_t>rows * knots * DRIFT_SPLINES, sizeof(float))
        elif self.knot_cells_of(sparse, n_names, pairs) > self.knot_room:
            self.splines = <float *>restrided(self.splines, 2 * rows, 2 * rows, self.knot_room * DRIFT_SPLINES, knots * DRIFT_SPLINES)
            self.knot_room = knots
        return 0

    cdef int reserve_slots(self, int slots) except -1:
        """Make room for as many slots as the store has."""
        cdef int before = self.stride
        cdef Py_ssize_t rows = <Py_ssize_t>self.row_room * self.n_experts, real = sizeof(double)
        if slots <= before:
            return 0
        self.row = <double *>aligned(self.row, before, slots, sizeof(double))
        self.dots = <float *>aligned(self.dots, before, slots, sizeof(float))
        self.distance = <float *>aligned(self.distance, before, slots, sizeof(float))
        self.kernels = <float *>aligned(self.kernels, 0, self.n_kernels * <Py_ssize_t>slots, sizeof(float))
        self.work_block = aligned(self.work_block, 0, slots + DRIFT_LANES, sizeof(double))
        self.coefficients = <float *>restrided(self.coefficients, rows, rows, before, slots)
        self.stride = slots
        return 0

    # --- what is predicted ---------------------------------------------------------------------

    cdef int see(self, x) except -1:
        """Make an example the store's point; FeatureError changes nothing."""
        if type(x) is not Row:
            return self.take(x, None, 0)
        return self.take(x.rows, RowsView(x.rows), x.i)

    cdef int say(self) except -1:
        """Let the members say what they think of the point."""
        cdef int n, r, k, e
        cdef const float *kernel
        if self.said:
            return 0
        for k in range(min(self.n_slots, self.cells - 1)):
            DRIFT_PREFETCH(self.linear + DRIFT_CELL_SIZE * (1 + <Py_ssize_t>self.slots[k]))
        n = self.store.compute_dots()
        self.reserve_slots(n)
        self.widen(self.store.work, self.store.point_scale, n)
        drift_distances(self.distance, self.dots, self.row, self.store.squared, self.own, n)
        for r in range(self.m.rows):
            for k in range(self.n_kernels):
                kernel = self.kernel(k, n, r)
                e = k * self.per_kernel
                drift_expert_sums(self.m.score + r * self.m.members + e, self.coefficients_of(r, e), kernel, self.per_kernel, self.stride, n)
            for e in range(self.n_experts):
                self.m.score[r * self.m.members + e] *= self.factors[e]
            drift_linear_sums(
                self.m.score + r * self.m.members + self.n_experts,
                self.linear + <Py_ssize_t>r * self.cell_room * DRIFT_CELL_SIZE,
                self.slots, self.values, min(self.n_slots, self.cells - 1),
            )
            if self.n_splines:
                drift_spline_sums(
                    self.m.score + r * self.m.members + self.n_experts + DRIFT_LINEARS,
                    self.splines_of(2 * r), &self.hats,
                )
        drift_say(&self.m)
        drift_decide_late(&self.m)
        self.said = True
        return 0

    cdef void widen(self, void *work, double scale, int n) noexcept:
        """Make inner products, as the columns have them, those of the slots."""
        drift_widen(self.store.wide, self.row, work, self.store.scale, scale, n)

    cdef const float *kernel(self, int k, int n, int r) noexcept:
        """Values of a kernel by slot, which are computed with the first row of scores."""
        cdef float *values = self.kernels + <Py_ssize_t>k * self.stride
        if self.widths[k] == 0.0:
            return self.dots
        if r == 0:
            if k and self.widths[k] == 8.0 * self.widths[k - 1]:
                drift_eighths(values, values - self.stride, n)
            else:
                drift_gaussians(values, self.distance, <float>self.widths[k], n)
        return values

    cdef float *splines_of(self, int k) noexcept:
        """The weights of row k / 2, or what is known of these."""
        return self.splines + <Py_ssize_t>k * self.knot_room * DRIFT_SPLINES

    cdef float *coefficients_of(self, int row, int expert) noexcept:
        return self.coefficients + (<Py_ssize_t>row * self.n_experts + expert) * self.stride

    def read(self, x):
        """Take an example as the one that `score` is about; FeatureError changes nothing."""
        self.enter()
        try:
            self.see(x)
        finally:
            self.leave()

    def score(self):
        """Number of the class that is predicted, -1 before any was met, and each one's probability."""
        cdef int c
        self.say()
        drift_chances(&self.m)
        return self.m.prediction, [self.m.next[c] for c in range(self.m.known)]

    @property
    def n_learnt(self):
        """Number of examples learnt."""
        return self.m.n_learnt

    def predict(self, x):
        """Return the number of the class that is predicted; -1 before anything was learnt."""
        self.enter()
        try:
            self.see(x)
            self.say()
            return self.m.prediction
        finally:
            self.leave()

    def learn_rows(self, rows, list predictions, list labels):
        """Predict rows from the one on whose number is that of the predictions; learn them if there are labels."""
        cdef RowsView view = RowsView(rows)
        cdef int i, prediction, number = 0
        self.enter()
        try:
            for i in range(<int>len(predictions), <int>len(rows)):
                if labels is not None:
                    number = self.number_of(labels[i])
                self.take(rows, view, i)
                self.say()
                prediction = self.m.prediction
                if labels is not None:
                    self.change(labels[i], number, 1.0, None)
                predictions.append(None if prediction < 0 else self.classes[prediction])
        finally:
            self.leave()

    # --- what is learnt ------------------------------------------------------------------------

    def learn(self, x, y, double w, TrackerCore behind=None):
        """Learn an example; return the number of the class that was predicted before.

        Where labels come late, `behind` is what this core was when it predicted the example.
        """
        cdef int number, prediction
        self.enter()
        try:
            number = self.number_of(y)
            self.see(x)
            self.say()
            prediction = self.m.prediction
            if behind is not None:
                behind.read(x)
                behind.say()
            if w != 0.0:
                self.change(y, number, w, behind)
            return prediction
        finally:
            self.leave()

    cdef int number_of(self, y) except -2:
        """Number of a class; -1 for a new one, LabelError for what is none."""
        try:
            number = self.numbers.get(y)
            if number is not None:
                return number
        except TypeError:
            pass
        from drift.models._store.class_labels import check_class

        check_class(y)
        return -1

    cdef int change(self, y, int number, double w, TrackerCore behind) except -1:
        """Learn the example read last, of which the members said what they think."""
        cdef bint new = number < 0, turns = self.turns(), inserts
        cdef double loss
        cdef uint64_t draws = self.draws
        cdef int slot = -1
        cdef int[3] places
        cdef ColumnStore store = self.store
        cdef list classes = self.classes, names = self.names
        cdef dict numbers = self.numbers
        if new:
            number = <int>len(classes)
            classes, numbers = [*classes, y], {**numbers, y: number}
            try:
                self.reserve_rows(rows_of(number + 1))
            except MemoryError:
                raise no_room(y, number + 1, self.class_size()) from None
        loss = w * drift_loss(&self.m, number)
        inserts = not turns and drift_inserts(&self.m, loss)
        drift_next_weights(&self.m, number, w)
        places[0] = -1
        if turns:
            store = self.new_store(True, store.wide)
            names = []
            self.reserve_cells(True, 0, False)
            self.choose_common()
        elif self.fresh:
            names = names + self.fresh
            self.reserve_cells(False, <int>len(names), self.next_pairs)
        if inserts or (self.fresh and not turns):
            self.store.begin()
            try:
                if self.fresh:
                    self.enter_names()
                if inserts and self.store.size == self.budget:
                    self.choose(&draws, places, new)
                if inserts:
                    slot = self.store.add(None, 0.0)  # the point
                    self.reserve_slots(self.store.padded())
                    if places[0] >= 0:
                        self.store.remove(places[0])
            except:
                self.store.undo()
                if self.fresh:
                    self.leave_names()
                raise
        # From here on nothing fails.
        if behind is not None:
            drift_weigh_late(&self.m, &behind.m, number, w)
        drift_weigh(&self.m, number, w, loss)
        self.norms += self.own + drift_bias[self.sparse] * drift_bias[self.sparse]
        if new:
            self.meet()
        self.classes, self.numbers = classes, numbers
        if turns:  # what the linear experts and splines know goes, and they have no room for new names
            self.turn(store, names)
            return 0
        if self.pairs and not self.next_pairs:
            self.drop_surfaces(<int>len(names))
        self.learn_linear(number, w)
        self.keep_scale(names)
        self.count_cells()
        if self.sparse:
            self.catch_up()
        self.draws = draws
        self.current = self.said = False
        if slot >= 0:
            self.insert(slot, places, number, w)
        if self.store.logging:
            problem = self.store.finish()
            if problem is not None:
                raise problem
        return 0

    cdef void meet(self) noexcept:
        """Let a new class join: it takes the spare row over."""
        cdef int e, n = self.m.members
        cdef Py_ssize_t size
        self.m.known += 1
        if self.m.known < 3:
            return
        if self.m.known == 3:
            part(self.coefficients, <Py_ssize_t>self.n_experts * self.stride, 1, 1)
            part(self.linear, <Py_ssize_t>self.cell_room * DRIFT_CELL_SIZE, DRIFT_CELL_SIZE, DRIFT_LINEARS)
            size = <Py_ssize_t>self.knot_room * DRIFT_SPLINES
            part(self.splines, 2 * size, 2 * size, size)
            for e in range(n):
                self.m.score[n + e], self.m.score[2 * n + e] = 0.5 * self.m.score[e], 0.0
                self.m.score[e] *= -0.5
            self.m.rows = 3
        double_last(self.coefficients, self.m.rows, <Py_ssize_t>self.n_experts * self.stride * sizeof(float))
        double_last(self.linear, self.m.rows, <Py_ssize_t>self.cell_room * DRIFT_CELL_SIZE * sizeof(float))
        double_last(self.splines, self.m.rows, 2 * <Py_ssize_t>self.knot_room * DRIFT_SPLINES * sizeof(float))
        double_last(self.m.score, self.m.rows, n * sizeof(double))
        self.m.rows += 1
        drift_softmax(self.m.softmax, self.m.score, self.m.rows, n)

    cdef void learn_linear(self, int number, double w) noexcept:
        """Step the linear experts and the splines."""
        cdef int r, c, e = self.n_experts, spline = self.n_experts + DRIFT_LINEARS
        cdef double step = w * (self.n_examples + 1) / self.norms, bias = drift_bias[self.sparse], sure
        cdef const double *rates = drift_descent[self.sparse]
        cdef double[DRIFT_SPLINES] gradient
        cdef double[DRIFT_SPLINES] known
        cdef const double *softmax
        for r in range(self.m.rows):
            softmax = self.m.softmax + (r if self.m.rows > 1 else 1) * self.m.members
            sure = softmax[e + 3]
            drift_linear_steps(
                self.linear + <Py_ssize_t>r * self.cell_room * DRIFT_CELL_SIZE, self.slots, self.values, self.n_slots,
                <float>(bias * bias),
                <float>(drift_gradient(&self.m, e, r, number) * rates[0] * step),
                <float>(drift_gradient(&self.m, e + 1, r, number) * rates[1] * step),
                <float>(drift_gradient(&self.m, e + 2, r, number) * w),
                drift_gradient(&self.m, e + 3, r, number) * w,
                sure * (1.0 - sure) * w,
            )
            if self.sparse or not self.n_splines:
                continue
            for c in range(DRIFT_SPLINES):
                gradient[c] = drift_gradient(&self.m, spline + c, r, number) * w
                known[c] = softmax[spline + c] * (1.0 - softmax[spline + c]) * w
            drift_spline_steps(
                self.splines_of(2 * r), self.splines_of(2 * r + 1), &self.hats, gradient, known
            )

    cdef void catch_up(self) noexcept:
        """Let the slower expert by gradient descent take over the faster one's weights, and that one begin anew, where they fell behind."""
        cdef int k, e = self.n_experts
        cdef double patience = max(DRIFT_PATIENCE, DRIFT_PATIENCE_BY_WEIGHT * self.m.rows * self.cells)
        for k in range(2):  # `next` has the losses
            self.lags[k] = max(0.0, self.lags[k] + self.m.next[e + k] - self.m.next[self.m.members - 1 if k else e + 1])
            if self.lags[k] > patience:
                self.lags[k] = 0.0
                drift_take_over(self.linear, <size_t>self.m.rows * self.cell_room, k, -1 if k else 1)

    cdef void drop_surfaces(self, int n_names) noexcept:
        """Keep the curves alone, in the room that is reserved for those of so many names."""
        cdef Py_ssize_t k, room = self.knot_room_of(False, n_names, False), kept = (1 + DRIFT_KNOTS * self.n_names) * DRIFT_SPLINES
        self.pairs = False
        if not self.n_names:
            return
        for k in range(2 * self.row_room):
            memcpy(self.smaller + k * room * DRIFT_SPLINES, self.splines_of(<int>k), kept * sizeof(float))
        self.take_smaller(<int>room)

    cdef void take_smaller(self, int room) noexcept:
        drift_free(self.splines)
        self.splines, self.smaller, self.knot_room = self.smaller, NULL, room

    cdef void leave_out_splines(self) noexcept:
        """Put the splines aside where rows are sparse, which have none.

        They keep what the share gives any member. No sequence of members goes on from their weight until then.
        """
        cdef int e, first = self.n_experts + DRIFT_LINEARS
        if self.sparse:
            for e in range(first, first + self.n_splines):
                self.m.weights[e], self.m.majority[e], self.m.path[e] = self.m.share / self.m.members, 0.0, INFINITY

    cdef void turn(self, ColumnStore store, list names) noexcept:
        """Go over to sparse rows: what is known of dense ones is dropped."""
        cdef int e
        cdef Py_ssize_t size = <Py_ssize_t>self.n_experts * self.stride
        self.sparse, self.n_examples, self.n_values, self.squares = True, 0, 0, 0.0
        self.pairs = self.next_pairs = False
        self.leave_out_splines()
        self.free_names()
        self.take_common()
        self.names, self.fresh = names, None
        self.store = store
        if size:
            memset(self.coefficients, 0, self.row_room * size * sizeof(float))
        memset(self.linear, 0, <Py_ssize_t>self.row_room * self.cell_room * DRIFT_CELL_SIZE * sizeof(float))
        self.take_smaller(self.knot_room_of(True, 0, False))
        for e in range(self.n_experts):
            self.factors[e] = 1.0
        self.norms = self.lags[0] = self.lags[1] = 0.0
        self.count_cells()
        self.current = self.said = False

    # --- the supports --------------------------------------------------------------------------

    cdef int choose(self, uint64_t *draws, int *places, bint new) except -1:
        """Choose the cheapest of some supports, and the two nearest to it; -1 where there are none."""
        cdef int k, least = 0
        cdef int32_t[DRIFT_DRAWS] slots
        cdef double[DRIFT_DRAWS] costs
        for k in range(DRIFT_DRAWS):
            slots[k] = self.store.order[drift_draw(draws, self.store.size)]
        drift_costs(
            costs, self.coefficients, self.stride, slots, self.store.squared, self.widths, self.n_kernels,
            self.factors, self.n_experts, self.m.next, self.m.gates + (DRIFT_GATES - 1) * self.m.scored,
            self.m.next[self.m.members - 1], self.m.rows, new and self.m.rows > 1,
        )
        for k in range(1, DRIFT_DRAWS):
            if costs[k] < costs[least]:
                least = k
        places[0] = slots[least]
        places[1] = places[2] = -1
        if self.store.size > 2:
            self.support_row(places[0])
            self.nearest(places)
            if places[2] < 0:  # of numbers that no example has
                places[1] = -1
            else:
                self.project(places)
        return 0

    cdef int support_row(self, int slot) except -1:
        """Fill `row` with the inner products of a support with all, leaving the point as it is."""
        cdef ColumnStore store = self.store
        cdef int k, n = store.padded(), count = store.row_size[slot]
        cdef int32_t *ids = store.rows[slot]
        cdef void *work
        if count > self.support_room:
            self.support_values = <double *>grown(self.support_values, 2 * count * sizeof(double))
            self.support_room = 2 * count
        for k in range(count):
            DRIFT_PREFETCH(&store.columns[ids[k]])
        for k in range(count):
            drift_prefetch_head(&store.columns[ids[k]])
        for k in range(count):
            drift_prefetch_rest(&store.columns[ids[min(k + 4, count - 1)]])
            self.support_values[k] = store.get(&store.columns[ids[k]], slot)
        if store.wide:
            work = <double *>self.work_block + DRIFT_LANES
        else:
            work = <float *>self.work_block + DRIFT_LANES
        drift_dots(store.wide, store.columns, ids, self.support_values, count, work, n, NULL)
        self.widen(work, store.scale[slot], n)
        return 0

    cdef void nearest(self, int *places) noexcept:
        """Find the two supports nearest to places[0], whose inner products are in `row`; of equals the older."""
        cdef ColumnStore store = self.store
        cdef int k, slot
        cdef double *distance = <double *>self.work_block
        cdef double own = store.squared[places[0]], first = INFINITY, second = INFINITY, third = INFINITY
        drift_all_distances(distance, self.row, store.squared, own, store.padded())
        for k in range(store.size):
            slot = store.order[k]
            if distance[slot] < third and slot != places[0]:
                if distance[slot] < first:
                    places[2], places[1] = places[1], slot
                    first, second, third = distance[slot], first, second
                elif distance[slot] < second:
                    places[2] = slot
                    second, third = distance[slot], second
                else:
                    third = distance[slot]
        # A squared norm is at most twice the sum of another one and the squared distance: so rounding decides nothing.
        if second - first > DRIFT_TIE * (3.0 * own + 2.0 * second) and third - second > DRIFT_TIE * (3.0 * own + 2.0 * third):
            return
        places[1] = self.nearest_but(distance, places[0], -1)
        places[2] = self.nearest_but(distance, places[0], places[1])

    cdef int nearest_but(self, const double *distance, int own, int other) noexcept:
        """The oldest support of those that are nearest, within rounding, but for these two; -1 where there is none."""
        cdef ColumnStore store = self.store
        cdef int k, slot
        cdef double least = INFINITY
        for k in range(store.size):
            slot = store.order[k]
            if distance[slot] < least and slot != own and slot != other:
                least = distance[slot]
        for k in range(store.size):
            slot = store.order[k]
            if slot != own and slot != other and distance[slot] < INFINITY and distance[slot] <= least + DRIFT_TIE * (store.squared[slot] + store.squared[own]):
                return slot
        return -1

    cdef void project(self, int *places) noexcept:
        """Work out what the two others get of the first one's coefficients."""
        cdef int a, k
        cdef double dots[3][3]
        for a in range(3):
            dots[a][a] = self.store.squared[places[a]]
        dots[0][1] = dots[1][0] = self.row[places[1]]
        dots[0][2] = dots[2][0] = self.row[places[2]]
        dots[1][2] = dots[2][1] = self.pair(places[1], places[2])
        for k in range(self.n_kernels):
            drift_project(self.widths[k], dots, self.shares + 2 * k)

    cdef double pair(self, int a, int b) noexcept:
        """Inner product of two supports."""
        cdef ColumnStore store = self.store
        cdef int k
        cdef int32_t j
        cdef double sum = 0.0
        cdef uint64_t[64] held  # by a column's last bits: to look for what only one of them has costs more
        if store.row_size[b] < store.row_size[a]:
            a, b = b, a
        memset(held, 0, sizeof(held))
        for k in range(store.row_size[b]):
            j = store.rows[b][k]
            held[j >> 6 & 63] |= <uint64_t>1 << (j & 63)
        for k in range(store.row_size[a]):
            j = store.rows[a][k]
            if held[j >> 6 & 63] >> (j & 63) & 1:
                sum += store.get(&store.columns[j], a) * store.get(&store.columns[j], b)
        return sum * store.scale[a] * store.scale[b]

    cdef void insert(self, int slot, const int *places, int number, double w) noexcept:
        """Give a new support its coefficients, and those of the one that goes to others."""
        cdef int r, e, k, i
        cdef double own = max(self.own, 1e-6)
        cdef float *row
        for e in range(self.n_experts):
            k = e // self.per_kernel
            self.factors[e] *= self.kept[e]
            for r in range(self.m.rows):
                row = self.coefficients_of(r, e)
                if places[0] >= 0:
                    if places[1] >= 0:
                        row[places[1]] = drift_flushed(row[places[1]] + self.shares[2 * k] * row[places[0]])
                        row[places[2]] = drift_flushed(row[places[2]] + self.shares[2 * k + 1] * row[places[0]])
                    row[places[0]] = 0.0
                if self.factors[e] < 1e-6:
                    for i in range(self.stride):
                        row[i] = drift_flushed(row[i] * <float>self.factors[e])
            if self.factors[e] < 1e-6:
                self.factors[e] = 1.0
            for r in range(self.m.rows):
                self.coefficients_of(r, e)[slot] = drift_flushed(
                    w * self.rates[e] * drift_gradient(&self.m, e, r, number) / self.factors[e] / (own if self.widths[k] == 0.0 else 1.0)
                )

    # --- what there is -------------------------------------------------------------------------

    @property
    def late(self):
        """Where labels come late, weights of the members and, last, of the whole: in the vote, and by log loss."""
        return array_at(self.m.late, 2 * (self.m.members + 1)).reshape(2, -1)

    @late.setter
    def late(self, weights):
        if self.m.late == NULL:
            self.m.late = <double *>widened(NULL, 0, 2 * (self.m.members + 1))
        copy_to(self.m.late, weights)
        self.said = False

    @property
    def n_supports(self):
        """Number of supports held."""
        return self.store.size

    def supports(self):
        """Return the supports, the oldest first."""
        found = [self.store.support(slot) for slot in self.store.slots()]
        return found if self.sparse else [{self.names[j]: v for j, v in x.items()} for x in found]

    def record(self):
        """Return what every member did so far, and the mixture."""
        state = self.state()
        names = ("weights", "errors", "losses", "path", "switches", "log_loss", "mistakes", "total", "sparse")
        return {name: state[name] for name in names} | {"examples": self.m.n_learnt}

    def state(self):
        """Return all that a tracker is, as plain values and arrays."""
        import numpy as np

        cdef int n = self.m.members, scored = self.m.scored, rows = self.m.rows, r, e, i
        self.guard.check()
        store = self.store.state()
        used = len(store["sizes"])
        state = {name: array_at(self.block + i * n, n) for i, name in enumerate(BY_MEMBER)}
        state |= {name: value for name, value in zip(SUMS, [self.m.total, self.m.log_loss, self.m.mistakes, self.m.mean_loss, self.m.mean_of, self.norms, self.squares])}
        coefficients = np.zeros((self.n_experts, rows, used), np.float32)
        for e in range(self.n_experts):
            for r in range(rows):
                coefficients[e, r] = floats_at(self.coefficients_of(r, e), used)
        linear = [floats_at(self.linear + <Py_ssize_t>r * self.cell_room * DRIFT_CELL_SIZE, self.cells * DRIFT_CELL_SIZE) for r in range(rows)]
        splines = [floats_at(self.splines_of(k), self.knot_cells * DRIFT_SPLINES) for k in range(2 * rows)]
        return state | {
            "gates": array_at(self.m.gates, DRIFT_GATES * scored).reshape(DRIFT_GATES, scored),
            "covariance": array_at(self.m.covariance, scored * scored).reshape(scored, scored),
            "trust": array_at(self.m.trust, 2),
            "maps": array_at(self.m.maps, DRIFT_MAPS),
            "factors": array_at(self.factors, self.n_experts),
            "lags": array_at(self.lags, 2),
            "mean": array_at(self.table_rows, self.n_common) if self.sparse else array_at(self.mean, self.n_names),
            "variance": (
                array_at(self.table_rows + self.n_common, self.n_common)
                if self.sparse
                else array_at(self.variance, self.n_names)
            ),
            "present": array_at(self.present, self.n_names),
            "common": np.array([self.common[k] for k in range(self.n_common)], np.int64),
            "coefficients": coefficients,
            "linear": np.array(linear).reshape(rows, self.cells, DRIFT_CELL_SIZE),
            "splines": np.array(splines).reshape(rows, 2, -1, DRIFT_SPLINES).swapaxes(1, 2).reshape(rows, -1, 2 * DRIFT_SPLINES),
            "classes": list(self.classes),
            "names": list(self.names),
            "sparse": self.sparse,
            "auto": self.auto,
            "n_learnt": self.m.n_learnt,
            "n_examples": self.n_examples,
            "n_values": self.n_values,
            "draws": self.draws,
            "store": store,
            "order": self.store.slots(),
        }

    def restore(self, state):
        """Be the tracker that gave `state`."""
        from drift.models._tracker.check import check_tracker

        check_tracker(self.plan, state)
        cdef int n = self.m.members, r, e, k
        cdef Py_ssize_t size
        order = state["order"], list(range(1, len(state["order"]) + 1)), len(state["order"])
        kernel = Linear(normalize=state["sparse"])
        self.store = ColumnStore.restore(kernel, self.budget + 1, state["store"], order, True)
        self.store.guard = self.guard
        self.sparse, self.auto = state["sparse"], state["auto"]
        self.pairs = not self.sparse and self.plan.has_surfaces(len(state["names"]), state["splines"].shape[1])
        self.next_pairs = self.pairs
        self.classes = list(state["classes"])
        self.numbers = {label: number for number, label in enumerate(self.classes)}
        self.m.known, self.m.rows = <int>len(self.classes), rows_of(len(self.classes))
        self.reserve_rows(self.m.rows)
        self.reserve_slots(self.store.capacity)
        self.free_names()
        self.fresh = list(state["names"])
        if not self.sparse:
            self.reserve_names(<int>len(self.fresh), 1)
        else:
            self.reserve_common(state["common"])
        self.enter_names()
        self.names, self.n_names, self.fresh = self.fresh, <int>len(self.fresh), None
        self.count_cells()
        self.reserve_cells(self.sparse, self.n_names, self.pairs)
        for k, name in enumerate(BY_MEMBER):
            copy_to(self.block + k * n, state[name])
        copy_to(self.m.gates, state["gates"])
        copy_to(self.m.covariance, state["covariance"])
        copy_to(self.m.trust, state["trust"])
        copy_to(self.m.maps, state["maps"])
        copy_to(self.factors, state["factors"])
        copy_to(self.lags, state["lags"])
        copy_to(self.table_rows if self.sparse else self.mean, state["mean"])
        copy_to(self.table_rows + self.n_common if self.sparse else self.variance, state["variance"])
        copy_to(self.present, state["present"])
        for r in range(self.m.rows):
            copy_to(self.linear + <Py_ssize_t>r * self.cell_room * DRIFT_CELL_SIZE, state["linear"][r])
            for k in range(2):
                copy_to(self.splines_of(2 * r + k), state["splines"][r, :, k * DRIFT_SPLINES : (k + 1) * DRIFT_SPLINES])
            for e in range(self.n_experts):
                copy_to(self.coefficients_of(r, e), state["coefficients"][e, r])
        self.m.total, self.m.log_loss, self.m.mistakes, self.m.mean_loss, self.m.mean_of, self.norms, self.squares = [state[name] for name in SUMS]
        self.m.n_learnt, self.n_examples, self.n_values = state["n_learnt"], state["n_examples"], state["n_values"]
        self.draws = state["draws"]
        self.current = self.said = False


BY_MEMBER = ("weights", "majority", "errors", "losses", "path", "switches")
SUMS = ("total", "log_loss", "mistakes", "mean_loss", "mean_of", "norms", "squares")


cdef inline int rows_of(Py_ssize_t n_classes) noexcept:
    """Scores of an expert: one of two classes, one for each of several and for a new one."""
    return <int>n_classes + 1 if n_classes > 2 else 1


cdef void *restrided(void *block, Py_ssize_t rows_before, Py_ssize_t rows, Py_ssize_t before, Py_ssize_t after) except NULL:
    """Rows of floats with room for more of them, or for longer ones; zeros behind."""
    cdef Py_ssize_t r
    cdef float *wide = <float *>aligned(NULL, 0, max(rows * after, 1), sizeof(float))
    for r in range(rows_before):
        if before:
            memcpy(wide + r * after, <float *>block + r * before, before * sizeof(float))
    drift_free(block)
    return wide


cdef void part(float *rows, Py_ssize_t size, int cell, int weights) noexcept:
    """Make one score's numbers those of two classes and a spare one; of a cell what is behind its weights is sums."""
    cdef Py_ssize_t i
    for i in range(size):
        rows[2 * size + i] = 0.0
        if i % cell >= weights:
            rows[size + i] = rows[i]
        else:
            rows[size + i] = <float>0.5 * rows[i]
            rows[i] = <float>0.0 - rows[size + i]  # no -0.0 in unused room: a copy has 0.0 there


cdef void double_last(void *rows, Py_ssize_t count, Py_ssize_t size) noexcept:
    if size:
        memcpy(<char *>rows + count * size, <char *>rows + (count - 1) * size, size)


cdef object array_at(const double *numbers, Py_ssize_t count):
    import numpy as np

    return np.frombuffer((<const char *>numbers)[: count * sizeof(double)] if count else b"", np.float64).copy()


cdef object floats_at(const float *numbers, Py_ssize_t count):
    import numpy as np

    return np.frombuffer((<const char *>numbers)[: count * sizeof(float)] if count else b"", np.float32).copy()


cdef int copy_to(void *numbers, values) except -1:
    """Copy the bytes of an array, whose type and size were checked."""
    cdef Py_buffer view
    import numpy as np

    PyObject_GetBuffer(np.ascontiguousarray(values), &view, PyBUF_SIMPLE)
    if view.len:
        memcpy(numbers, view.buf, view.len)
    PyBuffer_Release(&view)
    return 0
