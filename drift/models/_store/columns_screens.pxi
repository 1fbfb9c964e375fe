# float32 sums of many rows at once, which tell for which of them the exact score is needed.

cdef class Screens(Batches):
    """Rows against tiles of supports, and blocks of dense rows."""

    # --- rows against tiles of supports, see _ahead.py -----------------------------------------

    @property
    def tile(self):
        """Number of supports side by side in a tile; 0 where the kernel is not ours."""
        return DRIFT_TILE if self.kind != DRIFT_CUSTOM else 0

    def fill_tiles(self, out, int width):
        """Write the supports, as scaled, into zeroed float32 tiles of `width` features each."""
        cdef Py_buffer view
        cdef int f
        cdef size_t stride = <size_t>width * DRIFT_TILE
        cdef DriftColumn *column
        self.guard.check()
        self.index(width)
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            self.check_tiles(&view, width)
            if self.column_of == NULL:
                raise ValueError(f"{width} features are too many")
            for f in range(width):
                if self.column_of[f] < 0:
                    continue
                column = &self.columns[self.column_of[f]]
                (drift_into_tiles_double if self.wide else drift_into_tiles_float)(
                    column, <float *>view.buf + f * DRIFT_TILE, stride, self.used
                )
        finally:
            PyBuffer_Release(&view)

    def refill_tile(self, out, int width, int slot):
        """Write one support into its place, whatever is there."""
        cdef Py_buffer view
        cdef int f, k
        cdef Py_ssize_t index
        cdef float *place
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            self.check_tiles(&view, width)
            place = <float *>view.buf + <size_t>(slot // DRIFT_TILE) * width * DRIFT_TILE + slot % DRIFT_TILE
            for f in range(width):
                place[f * DRIFT_TILE] = 0.0
            for k in range(self.row_size[slot]):
                index = index_below(self.names[self.rows[slot][k]], width)
                if index >= 0:
                    place[index * DRIFT_TILE] = <float>self.get(&self.columns[self.rows[slot][k]], slot)
        finally:
            PyBuffer_Release(&view)

    cdef int check_tiles(self, Py_buffer *view, Py_ssize_t width) except -1:
        cdef Py_ssize_t tiles = (self.used + DRIFT_TILE - 1) // DRIFT_TILE
        if view.len < tiles * width * DRIFT_TILE * <Py_ssize_t>sizeof(float):
            raise ValueError(f"{self.used} slots of {width} features and {view.len} bytes")
        return 0

    def tile_dots(self, tiles, int width, rows, dots, int start, int first, int stop):
        """Fill `dots` with the inner products of rows and the supports in the tiles `first` to `stop`.

        Parameters
        ----------
        rows
            Rows as scaled, from `start` on: where each begins (int64), the features (int32) and
            values (float32) of all of them, each filled up to a multiple of 8 with zeros.
        dots
            Float32, a line for each row, as wide as there are tiles.
        """
        cdef Py_buffer tile, begin, ids, values, out
        cdef int64_t *indptr
        cdef int i, t, count = <int>len(rows[0]) - 1
        cdef Py_ssize_t stride
        PyObject_GetBuffer(tiles, &tile, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[0], &begin, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[1], &ids, PyBUF_SIMPLE)
        PyObject_GetBuffer(rows[2], &values, PyBUF_SIMPLE)
        PyObject_GetBuffer(dots, &out, PyBUF_WRITABLE)
        try:
            indptr = <int64_t *>begin.buf
            stop = min(stop, (self.used + DRIFT_TILE - 1) // DRIFT_TILE)  # the rest is room
            stride = tile.len // (<Py_ssize_t>sizeof(float) * max(width, 1))
            for t in range(first, stop):
                for i in range(start, count):
                    drift_tile_dots(
                        <float *>out.buf + i * stride + t * DRIFT_TILE,
                        <float *>tile.buf + <size_t>t * width * DRIFT_TILE,
                        <int32_t *>ids.buf + indptr[i],
                        <float *>values.buf + indptr[i],
                        <int>(indptr[i + 1] - indptr[i]),
                    )
        finally:
            PyBuffer_Release(&tile); PyBuffer_Release(&begin); PyBuffer_Release(&ids)
            PyBuffer_Release(&values); PyBuffer_Release(&out)

    def screen_classes(self, dots, squares, int start, targets, classes, rule, double error):
        """Pass over rows of a block that surely are no update; return the number of the first other one.

        Parameters
        ----------
        dots
            As `tile_dots` makes them.
        squares
            Squared norm of each row, doubles.
        targets
            Number of each row's own class, int32; where it is below 0, that of the best class takes
            its place.
        classes, rule
            As for `scan_classes`.
        error
            Bound on the error of an inner product, as a share of the norms.
        """
        cdef Py_buffer dot, square, target, weight, factor
        cdef int i, c, best, n = self.padded(), stop = <int>len(squares), count = <int>len(classes.factors)
        cdef Py_ssize_t width, stride
        cdef double threshold = rule.threshold
        cdef bint rivals = rule.rivals, wary = rule.wary
        cdef double *errors = <double *>grown(NULL, (n + 2 * count) * sizeof(double))
        cdef double *scores = errors + n
        cdef int32_t *own
        self.guard.check()
        PyObject_GetBuffer(dots, &dot, PyBUF_SIMPLE)
        PyObject_GetBuffer(squares, &square, PyBUF_SIMPLE)
        PyObject_GetBuffer(targets, &target, PyBUF_WRITABLE)
        PyObject_GetBuffer(classes.weights, &weight, PyBUF_SIMPLE)
        PyObject_GetBuffer(classes.factors, &factor, PyBUF_SIMPLE)
        try:
            own = <int32_t *>target.buf
            stride = <Py_ssize_t>dots.shape[1]
            width = weight.len // <Py_ssize_t>sizeof(double) // max(count, 1)
            if stride < n or (count and width < n):
                raise ValueError(f"{n} slots and room for {stride} and {width}")
            for i in range(start, stop):
                self.begin_point()
                if not self.rough_row(<float *>dot.buf + i * stride, (<double *>square.buf)[i], errors, n, error):
                    return i
                if wary and self.near_one(<float *>dot.buf + i * stride):
                    return i
                best = 0
                for c in range(count):
                    drift_rough_score(<double *>weight.buf + c * width, self.row, errors, n, scores + c, scores + count + c)
                    if (<double *>factor.buf)[c] * scores[c] > (<double *>factor.buf)[best] * scores[best]:
                        best = c
                if own[i] >= 0:
                    best = own[i]
                if not goes_by(scores, scores + count, <double *>factor.buf, count, best, threshold, rivals):
                    return i
                own[i] = best
            return stop
        finally:
            PyBuffer_Release(&dot); PyBuffer_Release(&square); PyBuffer_Release(&target)
            PyBuffer_Release(&weight); PyBuffer_Release(&factor)
            free(errors)

    cdef bint rough_row(self, const float *dots, double norm2, double *errors, int n, double error) noexcept:
        """Fill `row` for a point with these inner products, and bounds on how far off it is."""
        cdef double rounding = 4.0 * self.tie + 2.0**-36
        if not self.end_point(norm2):
            return False
        self.current = False
        if self.kind != DRIFT_RBF:
            drift_rough_polynomial(
                self.row, errors, dots, self.scale, self.point_scale, self.share, self.coef0 * self.point_share, n, self.degree, error, rounding
            )
            return True
        if self.gamma * self.point_squared > self.far:
            return False  # the one loop has other ways there
        drift_widen_float(self.row, dots, self.scale, self.point_scale, n)
        drift_rbf(self.row, self.squared, self.point_squared, self.gamma, n)
        drift_rough_rbf(
            self.row, errors, self.scale, self.point_scale, n, self.gamma, error,
            rounding + 2.0**-26 + 2.0**-40 * self.gamma * self.point_squared
        )
        return True

    cdef bint near_one(self, const float *dots) noexcept:
        """Whether a support may be the point, from inner products."""
        cdef int slot
        cdef double dot, own = self.point_squared * self.point_share**2
        for slot in range(self.used):
            dot = dots[slot] * self.scale[slot] * self.point_scale
            if self.squared[slot] * self.share[slot] ** 2 + own - 2.0 * dot <= 2.0**-10 * own:
                return True
        return False

    # --- blocks of dense rows, see _blocks.py --------------------------------------------------

    @property
    def screens(self):
        """Whether `matrix` and `screen` serve this store: float32 columns under a kernel of ours."""
        return not self.wide and self.kind != DRIFT_CUSTOM

    @property
    def normalizes(self):
        """Whether rows lie in the columns at unit norm, else scaled by a power of two."""
        return self.normalize

    def matrix(self, out, int width):
        """Write the supports, as scaled, into a float32 matrix of `width` rows by `capacity`.

        Returns the number of sparse columns.
        """
        cdef Py_buffer view
        cdef int f, sparse = 0, n = self.capacity
        cdef DriftColumn *column
        self.guard.check()
        self.index(width)
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        try:
            if view.len < <Py_ssize_t>width * n * <Py_ssize_t>sizeof(float):
                raise ValueError(f"{width} columns of {n} slots and {view.len} bytes")
            for f in range(width):
                column = &self.columns[self.column_of[f]] if self.column_of[f] >= 0 else NULL
                drift_spread(column, <float *>view.buf + <Py_ssize_t>f * n, n)
                sparse += column != NULL and not drift_is_dense(column)
        finally:
            PyBuffer_Release(&view)
        return sparse

    def screen(self, dots, squares, signs, scores, int start, int stop, double threshold, double error):
        """Score rows by inner products from elsewhere until one might be an update; return its number.

        Parameters
        ----------
        dots
            Float32 inner products, as scaled, of each row with each of `capacity` slots.
        squares
            Squared norm of each row, doubles.
        signs
            Int8, or None to decide all rows.
        scores
            Gets the score of each row: rough, of the right sign, or NaN for a row whose score is
            too close to 0 or to the threshold to tell.
        error
            Bound on the error of an inner product.
        """
        cdef Py_buffer dot, square, sign, out
        cdef int i = start, slot, n = self.padded()
        cdef double value, bound, margin, largest = 0.0, weights = 0.0
        self.guard.check()
        for slot in range(self.used):
            largest = max(largest, self.squared[slot])
            weights += fabs(self.weight[slot])
        PyObject_GetBuffer(dots, &dot, PyBUF_SIMPLE)
        PyObject_GetBuffer(squares, &square, PyBUF_SIMPLE)
        PyObject_GetBuffer(scores, &out, PyBUF_WRITABLE)
        PyObject_GetBuffer(signs if signs is not None else b"", &sign, PyBUF_SIMPLE)
        try:
            while i < stop:
                self.begin_point()
                self.end_point((<double *>square.buf)[i])
                self.current = False
                value = self.rough_score(<float *>dot.buf + <Py_ssize_t>i * self.capacity, n, error, sqrt(largest), weights, &bound)
                margin = (<int8_t *>sign.buf)[i] * value if signs is not None else 0.0
                if not fabs(value) > bound or (signs is not None and not fabs(margin - threshold) > bound):
                    (<double *>out.buf)[i] = float("nan")
                    break
                (<double *>out.buf)[i] = value
                if signs is not None and margin <= threshold:
                    break
                i += 1
        finally:
            PyBuffer_Release(&dot); PyBuffer_Release(&square); PyBuffer_Release(&out)
            PyBuffer_Release(&sign)
        return i

    cdef double rough_score(
        self, float *dots, int n, double error, double largest, double weights, double *bound
    ) noexcept:
        """Score from the inner products of the point, and a bound on how far off it may be.

        `error` is that of an inner product as a share of the norms, `largest` the largest norm of
        a support and `weights` the sum of the coefficients' sizes.
        """
        cdef double value, reach, slope = 0.0
        if self.kind == DRIFT_RBF:
            drift_widen_float(self.row, dots, self.scale, self.point_scale, n)
            drift_rbf(self.row, self.squared, self.point_squared, self.gamma, n)
            value = drift_weighted_sum(self.weight, self.row, n, self.tie, bound)
            slope = 2.0 * self.gamma * largest * sqrt(self.point_squared)
            if slope * error > 0.1 or self.gamma * self.point_squared > self.far:
                bound[0] = 1e308
                return value
            slope *= 1.1 * bound[0] / self.tie
        else:
            value = drift_score_float(self.weight, dots, self.scale, self.point_scale, self.share, self.coef0 * self.point_share, n, self.degree, self.tie, bound)
            if self.normalize or self.cosine:
                # The shares leave of a norm at most sqrt(1 + c), and a scale is at most twice that.
                reach = 4.0 * (1.0 + self.coef0) if self.cosine else 1.0
                slope = self.degree * drift_power(1.0 + reach * error + self.coef0, self.degree - 1) * reach * weights
                if fabs(value) > 4.0 * bound[0] + slope * error:  # no need to look closer
                    bound[0] = fabs(self.factor) * (4.0 * bound[0] + slope * error)
                    return self.factor * value
            slope = drift_slope(self.weight, dots, self.scale, self.point_scale, self.share, self.coef0 * self.point_share, n, self.degree, error)
        bound[0] = fabs(self.factor) * (4.0 * bound[0] + slope * error)
        return self.factor * value
