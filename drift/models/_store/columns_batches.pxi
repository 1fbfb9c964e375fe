# What is computed in one call for many rows of a batch, or for many classes.

cdef bint goes_by(
    const double *scores, const double *errors, const double *factors, int count, int own, double threshold, bint rivals
) noexcept:
    """Whether an example of class `own` surely is no update; see `ColumnStore.scan_classes`."""
    cdef int c
    cdef double sign, least, largest = 0.0
    if not 0 <= own < count:
        return False
    if not rivals:
        for c in range(count):
            sign = factors[c] if c == own else -factors[c]
            if not sign * scores[c] - fabs(factors[c]) * errors[c] > threshold:
                return False
        return True
    for c in range(count):
        largest = max(largest, fabs(factors[c]) * errors[c])
    least = factors[own] * scores[own] - threshold - 4.0 * largest
    if count == 1:
        return least > 0.0
    for c in range(count):
        if c != own and not least > factors[c] * scores[c]:
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

    def score_rows(self, rows):
        """Score of each row of a `drift.models._store.rows.Rows`."""
        cdef RowsView view
        cdef int i
        cdef list scores = []
        self.guard.check()
        self.index(rows.width)
        open_rows(rows, &view)
        try:
            for i in range(<int>len(rows)):
                self.read_row_at(&view, i)
                scores.append(self.score())
        finally:
            close_rows(&view)
        return scores

    @cython.boundscheck(True)  # the labels may be those of a damaged checkpoint
    def learn_rows(self, rows, list predictions, list labels, signs, model):
        """Learn rows as `learn` does, from the one on whose number is that of the predictions.

        What is predicted, one of ``model._labels``, is appended once the row is learnt. `signs` are
        those of the labels, int8.
        """
        cdef RowsView view
        cdef Py_buffer sign
        cdef int i
        cdef double value, margin = model._update_margin
        self.guard.check()
        self.index(rows.width)
        open_rows(rows, &view)
        PyObject_GetBuffer(signs, &sign, PyBUF_SIMPLE)
        try:
            for i in range(<int>len(predictions), <int>len(rows)):
                self.read_row_at(&view, i)
                value = self.score()
                known, y = model._labels, labels[i]
                if not self.pass_over(value, (<int8_t *>sign.buf)[i], margin, model, y):
                    self.guard.update(model, model._step, Row(rows, i), y, <double>(<int8_t *>sign.buf)[i], value)
                predictions.append(known[1 if value > 0.0 else 0])
        finally:
            close_rows(&view)
            PyBuffer_Release(&sign)

    def class_scores(self, weights, scores, roundings):
        """Score the point under several sets of coefficients, with one kernel row.

        `weights` holds as many rows as `scores` and `roundings` have entries, each as wide and with
        as many zeros behind the last slot as the width says: `capacity` or more. A score is 0 within
        rounding of 0; `roundings` gets the bound on each one's error.
        """
        cdef Py_buffer weight, score, rounding
        cdef int count
        cdef Py_ssize_t width
        cdef bint finite
        self.check_reader()
        PyObject_GetBuffer(weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(scores, &score, PyBUF_WRITABLE)
        PyObject_GetBuffer(roundings, &rounding, PyBUF_WRITABLE)
        try:
            count = <int>(score.len // <Py_ssize_t>sizeof(double))
            if rounding.len < score.len:
                raise ValueError(f"{count} classes and fewer roundings")
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            finite = self.score_classes(<double *>weight.buf, count, width, <double *>score.buf, <double *>rounding.buf)
        finally:
            PyBuffer_Release(&weight); PyBuffer_Release(&score); PyBuffer_Release(&rounding)
        if not finite:
            raise self.overflow()

    cdef bint score_classes(
        self, const double *weight, int count, Py_ssize_t width, double *score, double *rounding
    ) except -1:
        """Score the point under `count` sets of coefficients; False where that overflows."""
        cdef int c, n = self.compute_row()
        cdef bint finite = True
        if count and width < n:
            raise ValueError(f"{count} classes of {n} slots and room for {width}")
        for c in range(count):
            score[c] = drift_weighted_sum(weight + c * width, self.row, n, self.tie, rounding + c)
            finite &= rounding[c] - rounding[c] == 0.0  # of terms that are infinite the sum may be 0
        return finite

    def scan_classes(self, rows, list predictions, list labels, classes, rule):
        """Append what is predicted of rows up to the first that might be an update.

        It begins with the row whose number is that of the predictions; the classes' calibration learns
        from rows that have a label.

        Parameters
        ----------
        rows
            A `drift.models._store.rows.Rows`.
        labels
            Label of each row; None to predict all rows whose class is beyond rounding.
        classes
            A `drift.models._store.rows.Classes`.
        rule
            A `drift.models._store.rows.Rule`.
        """
        cdef RowsView view
        cdef Py_buffer weight, factor
        cdef int i, c, own, stop = <int>len(rows), count = <int>len(classes.factors)
        cdef Py_ssize_t width
        cdef double threshold = rule.threshold
        cdef bint rivals = rule.rivals, wary = rule.wary
        cdef dict numbers = classes.numbers
        cdef list names = list(numbers)
        cdef Calibration calibration = classes.calibration
        cdef double *scores = <double *>grown(NULL, 2 * count * sizeof(double))
        self.index(rows.width)
        open_rows(rows, &view)
        PyObject_GetBuffer(classes.weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(classes.factors, &factor, PyBUF_SIMPLE)
        try:
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            for i in range(<int>len(predictions), stop):
                own = -1 if labels is None else numbers.get(labels[i], count)
                self.read_row_at(&view, i)
                if not self.score_classes(<double *>weight.buf, count, width, scores, scores + count):
                    break
                if own < 0:
                    own = best_class(scores, <double *>factor.buf, count)
                if not goes_by(scores, scores + count, <double *>factor.buf, count, own, threshold, rivals):
                    break
                if wary and self.may_be_held():
                    break
                if labels is not None:
                    for c in range(count):
                        scores[c] *= (<double *>factor.buf)[c]
                    calibration.take_classes(scores, count, own, 1.0)
                predictions.append(names[own])
        finally:
            close_rows(&view)
            PyBuffer_Release(&weight); PyBuffer_Release(&factor)
            free(scores)

    cdef bint may_be_held(self) noexcept:
        """Whether a support may be the point, whose kernel row was just made."""
        cdef int slot
        cdef double dot, own = self.point_squared * self.point_share**2
        for slot in range(self.used):
            dot = (<double *>self.work)[slot] if self.wide else (<float *>self.work)[slot]
            dot *= self.scale[slot] * self.point_scale
            if self.squared[slot] * self.share[slot] ** 2 + own - 2.0 * dot <= 2.0**-16 * own:
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
        cdef Py_buffer kernel, slot, sign, weight
        cdef Py_ssize_t k, s, n = len(signs)
        cdef double term, sum = 0.0, size = 0.0, value = 0.0, votes = 0.0, most = 0.0
        PyObject_GetBuffer(row, &kernel, PyBUF_SIMPLE)
        PyObject_GetBuffer(slots if slots is not None else b"", &slot, PyBUF_SIMPLE)
        PyObject_GetBuffer(signs, &sign, PyBUF_SIMPLE)
        PyObject_GetBuffer(survived, &weight, PyBUF_SIMPLE)
        try:
            if (
                sign.len != n * <Py_ssize_t>sizeof(double)
                or weight.len != (n + 1) * <Py_ssize_t>sizeof(double)
                or (slots is not None and slot.len != n * <Py_ssize_t>sizeof(int32_t))
            ):
                raise ValueError(f"{n} supports, and not as many slots and votes")
            for k in range(n):
                s = (<int32_t *>slot.buf)[k] if slots is not None else k
                if not 0 <= s < kernel.len // <Py_ssize_t>sizeof(double):
                    raise ValueError(f"slot {s} is not in the row")
                term = (<double *>sign.buf)[k] * (<double *>kernel.buf)[s]
                sum += term
                size += fabs(term)
                value = 0.0 if fabs(sum) <= self.tie * size else sum
                if not averaged:
                    votes += (<double *>weight.buf)[k + 1] * ((value > 0.0) - (value < 0.0))
                else:
                    votes += (<double *>weight.buf)[k + 1] * value
                    most += (<double *>weight.buf)[k + 1] * size
        finally:
            PyBuffer_Release(&kernel); PyBuffer_Release(&slot); PyBuffer_Release(&sign); PyBuffer_Release(&weight)
        return (0.0 if averaged and fabs(votes) <= self.tie * most else votes), value
