# Many rows of a batch in one call: `score_rows`, `learn_rows_with` for binary models, and
# `learn_class_rows_until_update` for several classes.
#
# Each row is read as the point and then scored or learnt as a single example is, so a batch has the loop's results.
# Columns of the batch are looked up once. If dense columns take most of the time, a `Window` sums them for many rows.

cdef bint may_update(
    const double *scores, const double *error_bounds, const double *factors, int n_classes, int k, double margin,
    bint over_rival
) noexcept:
    """Whether an example of class `k` may cause an update; yes if rounding leaves it open. See `ClassHypotheses`."""
    cdef int c
    cdef double sign, least, largest = 0.0
    if not 0 <= k < n_classes:
        return True
    if not over_rival:
        for c in range(n_classes):
            sign = factors[c] if c == k else -factors[c]
            if not sign * scores[c] - fabs(factors[c]) * error_bounds[c] > margin:
                return True
        return False
    for c in range(n_classes):
        largest = max(largest, fabs(factors[c]) * error_bounds[c])
    least = factors[k] * scores[k] - margin - 4.0 * largest
    if n_classes == 1:
        return not least > 0.0
    for c in range(n_classes):
        if c != k and not least > factors[c] * scores[c]:
            return True
    return False


cdef int best_class(const double *scores, const double *factors, int n_classes) noexcept:
    """The class with the largest score, the first of equal ones."""
    cdef int c, best = 0
    for c in range(1, n_classes):
        if factors[c] * scores[c] > factors[best] * scores[best]:
            best = c
    return best


cdef class Batches(Steps):
    """The layer that reads, scores and learns the rows of a batch."""

    cdef int read_next(self, rows, RowsView view, int i) except -1:
        """Read a row of a batch; open a window for it and the next rows if that pays."""
        cdef Py_ssize_t real = sizeof(double) if self.wide else sizeof(float), column_bytes = self.padded_slots() * real
        cdef int k, n_dense = 0
        if view is None:
            self.read((<list>rows)[i])
            return 0
        self.read_row_at(view, i)
        if self.n_terms * column_bytes < DRIFT_WINDOW_BYTES or i == view.size - 1:
            return 0
        if self.window_row == i and self.window.covers(i, self.padded_slots()):
            return 0
        for k in range(self.n_terms):
            n_dense += drift_is_dense(&self.columns[self.terms.ids[k]])
        if n_dense * column_bytes >= DRIFT_WINDOW_BYTES:
            self.open_window(view, i)
            self.read_row_at(view, i)
        return 0

    cdef RowsView open_batch(self, rows):
        """Prepare the look-up of rows; None for a list of mappings."""
        cdef RowsView view = None
        if type(rows) is Rows:
            view = view_of(rows)
            self.look_up_batch(view)
        return view

    cdef int open_window(self, RowsView view, int first) except -1:
        """Sum the dense columns of the next rows, from `first` on."""
        cdef Window window = Window(view, first, self.padded_slots(), self.wide)
        cdef Terms *point = &self.sorted_terms
        cdef int i
        self.window = None
        for i in range(first, min(first + DRIFT_WINDOW, view.size)):
            try:
                self.read_row_at(view, i)
            except FeatureError:
                break  # raised again when the row is learnt
            self.sort_point()
            drift_record_row(
                self.wide, window.recorded, i - first, self.columns, point.ids, point.values, self.n_terms
            )
            window.n_rows += 1
        drift_sum_rows(self.wide, window.recorded, window.sums, window.n_rows, window.n_slots)
        self.window = window
        return 0

    cdef void close_window(self, int left) noexcept:
        """Release the window, and with it the batch, if at most one row is left."""
        if left <= 1:
            self.window = None

    def score_rows(self, rows, list scores):
        """Append the score of each row."""
        cdef RowsView view = self.open_batch(rows)
        cdef int i
        for i in range(<int>len(rows)):
            self.read_next(rows, view, i)
            scores.append(self.score())
        self.close_window(0)

    @cython.boundscheck(True)  # labels may come from a damaged checkpoint
    def learn_rows_with(self, rows, list predictions, list labels, signs, model, *, stop=None, bint until_update=False):
        """Predict rows, and learn them as `learn_with` does, from row ``len(predictions)`` on."""
        cdef RowsView view = self.open_batch(rows)
        cdef Buffer sign = None if labels is None else buffer_of(signs, b"b")
        cdef int i, first = <int>len(predictions), n = <int>len(rows)
        cdef double label_sign, value, margin = model._update_margin
        cdef dict attributes = attributes_of(model)
        cdef tuple pair
        cdef object x = None
        if sign is not None and sign.view.len < n:
            raise ValueError(f"a buffer of {sign.view.len} items, where {n} are needed")
        for i in range(first, n if stop is None else min(n, <int>stop)):
            self.read_next(rows, view, i)
            value, pair = self.score(), attributes["_labels"]
            if labels is not None:
                y, label_sign = labels[i], (<int8_t *>sign.view.buf)[i]
                if not self.try_without_update(y, label_sign, value, margin, model):
                    if until_update:
                        break
                    # Making a Row takes as long as reading it. One that no hook has kept serves again.
                    if view is not None and x is not None and Py_REFCNT(x) == 1:
                        x.i = i
                    else:
                        x = rows[i]
                    self.step(x, y, label_sign, value, model)
            predictions.append(pair[1 if value > 0.0 else 0])
        self.close_window(n - <int>len(predictions))

    def learn_class_rows_until_update(self, rows, list predictions, list labels, classes):
        """Predict and learn rows, from ``len(predictions)`` on, up to the first that may update."""
        cdef RowsView view = self.open_batch(rows)
        cdef Buffer by_class = buffer_of(classes.coefficients, b"d", PyBUF_ND)
        cdef Buffer factor = buffer_of(classes.coefficient_factors, b"d")
        cdef int i, c, k, n = <int>len(rows), n_classes = <int>len(classes.coefficient_factors)
        cdef double margin = 0.0 if labels is None else classes.update_margin
        cdef bint over_rival = labels is None or classes.over_rival
        cdef bint repeats_may_update = labels is not None and classes.repeats_may_update
        cdef dict index_of = classes.index_of
        cdef list class_labels = list(index_of)
        cdef Calibration calibration = classes.calibration
        cdef Buffer work = buffer_of(bytearray(2 * n_classes * sizeof(double)), b"B")
        cdef double *scores = doubles(work, 2 * n_classes)
        cdef double *factors = doubles(factor, n_classes)
        for i in range(<int>len(predictions), n):
            k = -1 if labels is None else index_of.get(labels[i], n_classes)
            self.read_next(rows, view, i)
            if not self.score_classes(by_class, n_classes, scores, scores + n_classes):
                break
            if k < 0:
                k = best_class(scores, factors, n_classes)
            if may_update(scores, scores + n_classes, factors, n_classes, k, margin, over_rival):
                break
            if repeats_may_update and self.may_be_support():
                break
            if labels is not None:
                for c in range(n_classes):
                    scores[c] *= factors[c]
                calibration.learn_scores(scores, n_classes, k, 1.0)
            predictions.append(class_labels[k])
        self.close_window(n - <int>len(predictions))
