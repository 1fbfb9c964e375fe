# What is computed in one call for many rows of a batch, or for many classes.

cdef bint is_no_update(
    const double *scores, const double *errors, const double *factors, int count, int label, double margin, bint rivals
) noexcept:
    """Whether an example of class `label` surely is no update; see `ColumnStore.scan_classes`."""
    cdef int c
    cdef double sign, least, largest = 0.0
    if not 0 <= label < count:
        return False
    if not rivals:
        for c in range(count):
            sign = factors[c] if c == label else -factors[c]
            if not sign * scores[c] - fabs(factors[c]) * errors[c] > margin:
                return False
        return True
    for c in range(count):
        largest = max(largest, fabs(factors[c]) * errors[c])
    least = factors[label] * scores[label] - margin - 4.0 * largest
    if count == 1:
        return least > 0.0
    for c in range(count):
        if c != label and not least > factors[c] * scores[c]:
            return False
    return True


cdef int best_class(const double *scores, const double *factors, int count) noexcept:
    cdef int c, best = 0
    for c in range(1, count):
        if factors[c] * scores[c] > factors[best] * scores[best]:
            best = c
    return best


cdef class Batches(Scores):
    """Scores of rows until one is an update, and of the classes that share the supports."""

    cdef int read_next(self, RowsView view, int i) except -1:
        """Read a row of a batch whose next rows come after it, and open a window where that pays."""
        cdef Py_ssize_t slot = self.padded() * <Py_ssize_t>(sizeof(double) if self.wide else sizeof(float))
        cdef int k, n_dense = 0
        self.read_row_at(view, i)
        if self.count * slot < DRIFT_WORTH or i == view.size - 1:
            return 0
        if self.window_row == i and self.window.holds(i, self.padded()):
            return 0
        for k in range(self.count):
            n_dense += drift_is_dense(&self.columns[self.ids[k]])
        if n_dense * slot >= DRIFT_WORTH:
            self.open_window(view, i)
            self.read_row_at(view, i)
        return 0

    cdef int open_window(self, RowsView view, int first) except -1:
        """Sum up the dense columns of the rows from one on."""
        cdef Window window = Window(view.rows, first, self.padded(), self.wide)
        cdef int i
        self.window = None
        for i in range(first, min(first + DRIFT_WINDOW, view.size)):
            try:
                self.read_row_at(view, i)
            except FeatureError:
                break  # which is raised when the row's turn comes
            self.sort_point()
            drift_store_row(self.wide, window.stored, i - first, self.columns, self.sorted_ids, self.sorted_values, self.count)
            window.size += 1
        drift_sum_rows(self.wide, window.stored, window.sums, window.size, window.slots)
        self.window = window
        return 0

    cdef void close_window(self, RowsView view, int done) noexcept:
        """Let go of a window, and the batch, where at most one row is left."""
        if done >= view.size - 1:
            self.window = None

    def score_rows(self, rows):
        """Score of each row of a `drift.models._store.rows.Rows`."""
        cdef RowsView view = RowsView(rows)
        cdef int i
        cdef list scores = []
        self.index(rows.width)
        for i in range(view.size):
            self.read_next(view, i)
            scores.append(self.score())
        self.close_window(view, view.size)
        return scores

    @cython.boundscheck(True)  # the labels may be those of a damaged checkpoint
    def learn_rows(self, rows, list predictions, list labels, signs, model):
        """Learn rows as `learn` does, from the one on whose number is that of the predictions.

        What is predicted, one of ``model._labels``, is appended once the row is learnt. `signs` are
        those of the labels, int8.
        """
        cdef RowsView view = RowsView(rows)
        cdef Buffer sign = held(signs)
        cdef int i
        cdef double label_sign, value, margin = model._update_margin
        self.index(rows.width)
        for i in range(<int>len(predictions), view.size):
            self.read_next(view, i)
            value, label_sign = self.score(), (<int8_t *>sign.view.buf)[i]
            pair, y = model._labels, labels[i]
            if not self.needs_no_update(y, label_sign, value, margin, model):
                self.run_step(Row(rows, i), y, label_sign, value, model)
            predictions.append(pair[1 if value > 0.0 else 0])
        self.close_window(view, view.size)

    def class_scores(self, weights, scores, roundings):
        """Score the point under several sets of coefficients, with one kernel row.

        `weights` holds as many rows as `scores` and `roundings` have entries, each as wide and with
        as many zeros behind the last slot as the width says: `capacity` or more. A score is 0 within
        rounding of 0; `roundings` gets the bound on each one's error.
        """
        cdef Buffer weight = held(weights), score = held(scores, PyBUF_WRITABLE)
        cdef Buffer rounding = held(roundings, PyBUF_WRITABLE)
        cdef int count = <int>(score.view.len // <Py_ssize_t>sizeof(double))
        self.check_reader()
        if not self.score_classes(weight, count, doubles(score, count), doubles(rounding, count)):
            raise self.overflow()

    cdef bint score_classes(self, Buffer weights, int count, double *score, double *rounding) except -1:
        """Score the point under `count` sets of coefficients; False where that overflows."""
        cdef int c, n = self.compute_row()
        cdef const double *weight = <double *>weights.view.buf
        cdef Py_ssize_t width = weights.view.len // <Py_ssize_t>sizeof(double) // max(count, 1)
        cdef bint finite = True
        if count and width < n:
            raise ValueError(f"{count} classes of {n} slots and room for {width}")
        for c in range(count):
            score[c] = drift_weighted_sum(weight + c * width, self.row, n, self.tie, rounding + c)
            finite &= rounding[c] - rounding[c] == 0.0  # of terms that are infinite the sum may be 0
        return finite

    def scan_classes(self, rows, list predictions, list labels, classes):
        """Append what is predicted of rows up to the first that might be an update.

        It begins with the row whose number is that of the predictions; the classes' calibration learns
        from rows that have a label.

        Parameters
        ----------
        rows
            A `drift.models._store.rows.Rows`.
        labels
            Label of each row; None to predict all rows of which one class surely is the best.
        classes
            A `drift.models._store.rows.Classes`.
        """
        cdef RowsView view = RowsView(rows)
        cdef Buffer weight = held(classes.weights), factor = held(classes.factors)
        cdef int i, c, label, count = <int>len(classes.factors)
        cdef double margin = 0.0 if labels is None else classes.margin
        cdef bint rivals = labels is None or classes.rivals
        cdef bint supports_may_update = labels is not None and classes.supports_may_update
        cdef dict numbers = classes.numbers
        cdef list names = list(numbers)
        cdef Calibration calibration = classes.calibration
        cdef Buffer work = held(bytearray(2 * count * sizeof(double)))
        cdef double *scores = doubles(work, 2 * count)
        cdef double *factors = doubles(factor, count)
        self.index(rows.width)
        for i in range(<int>len(predictions), view.size):
            label = -1 if labels is None else numbers.get(labels[i], count)
            self.read_next(view, i)
            if not self.score_classes(weight, count, scores, scores + count):
                break
            if label < 0:
                label = best_class(scores, factors, count)
            if not is_no_update(scores, scores + count, factors, count, label, margin, rivals):
                break
            if supports_may_update and self.may_be_held():
                break
            if labels is not None:
                for c in range(count):
                    scores[c] *= factors[c]
                calibration.update_classes(scores, count, label, 1.0)
            predictions.append(names[label])
        self.close_window(view, <int>len(predictions))

    cdef bint may_be_held(self) noexcept:
        """Whether a support may be the point, whose kernel row was just made."""
        cdef int slot
        cdef double dot, squared = self.point_squared * self.point_share**2
        for slot in range(self.used):
            dot = (<double *>self.work)[slot] if self.wide else (<float *>self.work)[slot]
            dot *= self.scale[slot] * self.point_scale
            if self.squared[slot] * self.share[slot] ** 2 + squared - 2.0 * dot <= same_share * squared:
                return True
        return False

    def vote(self, row, slots, signs, survived, bint averaged):
        """Score a point under all prefixes of an expansion; return their vote and the last score.

        Parameters
        ----------
        row
            Kernel between the point and each slot, as `fill_row` makes it.
        slots
            Slots of the supports in their order, int32; None where those are 0, 1, 2, ...
        signs
            Coefficients of the supports, doubles.
        survived
            Weight of each prefix's vote, that of none first.
        averaged
            A prefix votes with its score instead of its sign; a sum within rounding of 0 is 0.
        """
        cdef Py_ssize_t k, s, n = len(signs)
        cdef Buffer kernels = held(row), coefficients = held(signs), weights = held(survived)
        cdef Buffer places = None if slots is None else held(slots)
        cdef const double *kernel = <double *>kernels.view.buf
        cdef const double *coefficient = doubles(coefficients, n)
        cdef const double *weight = doubles(weights, n + 1) + 1
        cdef double term, sum = 0.0, size = 0.0, value = 0.0, votes = 0.0, most = 0.0
        if slots is not None and places.view.len != n * <Py_ssize_t>sizeof(int32_t):
            raise ValueError(f"{n} supports, and not as many slots")
        for k in range(n):
            s = (<int32_t *>places.view.buf)[k] if slots is not None else k
            if not 0 <= s < kernels.view.len // <Py_ssize_t>sizeof(double):
                raise ValueError(f"slot {s} is not in the row")
            term = coefficient[k] * kernel[s]
            sum += term
            size += fabs(term)
            value = 0.0 if fabs(sum) <= self.tie * size else sum
            if not averaged:
                votes += weight[k] * ((value > 0.0) - (value < 0.0))
            else:
                votes += weight[k] * value
                most += weight[k] * size
        return (0.0 if averaged and fabs(votes) <= self.tie * most else votes), value
