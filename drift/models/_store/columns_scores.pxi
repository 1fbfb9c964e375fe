# The point's kernel values, and its scores under one set of coefficients or several.
#
# A score of a linear or polynomial kernel needs no kernel values: `drift_score` makes it of the inner products in one
# pass. What needs them calls `compute_kernels`, which computes them once for a point. Arithmetic is in scores.h.

cdef class Scores(Point):
    """The layer that computes the point's inner products, kernel values and scores."""

    cdef double point_score, point_error_bound  # without `coefficient_factor`
    cdef object cached_self_kernel  # k(x, x) of an x with `cached_squared_norm`
    cdef double cached_squared_norm

    cdef int compute_dots(self) except -1:
        """Fill `dots` with the inner products of the stored values of the point and every slot."""
        cdef int n = self.padded_slots()
        cdef Terms *point = &self.sorted_terms
        cdef const void *sums = NULL
        if not self.point_valid:
            raise RuntimeError(NO_POINT)
        self.sort_point()
        if self.window is not None and self.window.covers(self.window_row, n):
            sums = self.window.sums_of(self.window_row, self.columns, point.ids, point.values, self.n_terms)
        drift_dots(self.wide, self.columns, point.ids, point.values, self.n_terms, self.dots, n, sums)
        return n

    cdef int compute_score(self) except -1:
        """Fill `point_score` for the point."""
        cdef int n
        if self.kernel_kind == DRIFT_LINEAR or self.kernel_kind == DRIFT_POLYNOMIAL:
            n = self.compute_dots()
            self.point_score = drift_score(
                self.wide, self.unscaled_coefficients, self.dots, self.dot_factors, self.point_dot_factor,
                self.cosine_factors, self.coef0 * self.point_cosine_factor, n, self.degree, self.relative_tolerance,
                &self.point_error_bound
            )
        else:
            n = self.compute_kernels()
            self.point_score = drift_score_of_kernels(
                self.unscaled_coefficients, self.kernels, n, self.relative_tolerance, &self.point_error_bound
            )
        return 0

    cdef int compute_kernels(self) except -1:
        """Fill `kernels` with the kernel between the point and every slot; return their number."""
        cdef int n = self.padded_slots()
        cdef list near
        if self.kernels_valid:
            return n
        self.compute_dots()
        drift_inner_products(self.wide, self.kernels, self.dots, self.dot_factors, self.point_dot_factor, n)
        if self.kernel_kind == DRIFT_LINEAR or self.kernel_kind == DRIFT_POLYNOMIAL:
            drift_polynomial(self.kernels, self.cosine_factors, self.coef0 * self.point_cosine_factor, n, self.degree)
        elif self.kernel_kind == DRIFT_RBF:
            # |a|^2 + |b|^2 - 2 <a, b> cancels if both norms are large beside the distance.
            near = self.near_slots() if self.gamma * self.point_squared_norm > self.exact_above else []
            if self.wide:
                drift_rbf_double(self.kernels, self.squared_norms, self.point_squared_norm, self.gamma, n)
            else:
                drift_rbf_float(self.kernels, self.squared_norms, self.point_squared_norm, self.gamma, n)
            for slot in near:
                self.kernels[<int>slot] = exp(-self.gamma * self.squared_distance(slot))
        else:
            self.call_kernel()
        self.kernels_valid = True
        return n

    cdef list near_slots(self):
        """Slots that may be near enough for a kernel value above 0, by the inner products in `kernels`."""
        cdef int slot
        cdef double sum
        cdef list near = []
        for slot in range(self.n_slots):
            sum = self.squared_norms[slot] + self.point_squared_norm
            if self.gamma * (sum - 2.0 * self.kernels[slot] - self.distance_error * sum) < zero_exponent:
                near.append(slot)
        return near

    cdef double squared_distance(self, int slot) except -1.0:
        """Squared distance between the point and a support, feature by feature."""
        cdef int k
        cdef double value, other, sum
        cdef CompensatedSum unknown = CompensatedSum(0.0, 0.0)
        cdef set columns = set()
        for k in range(self.n_unknown):
            add_square(&unknown, self.given[self.unknown[k]].value)
        sum = (unknown.total + unknown.lost) / (self.divisor / self.point_dot_factor) ** 2
        for k in range(self.n_terms):
            columns.add(self.sorted_terms.ids[k])
            value = self.sorted_terms.values[k] * self.point_dot_factor
            if not self.wide:
                value = <double><float>self.sorted_terms.values[k] * self.point_dot_factor
            other = self.get(&self.columns[self.sorted_terms.ids[k]], slot) * self.dot_factors[slot]
            sum += (value - other) ** 2
        for k in range(self.n_features[slot]):
            if self.features[slot][k] not in columns:
                sum += (self.get(&self.columns[self.features[slot][k]], slot) * self.dot_factors[slot]) ** 2
        return sum

    cdef int call_kernel(self) except -1:
        """Apply a user's kernel to the inner products in `kernels`."""
        cdef bytes dots = (<char *>self.kernels)[:self.n_slots * sizeof(double)]
        cdef int n
        self.apply_kernel(np.frombuffer(dots), self.squared_norms_for_kernel(), self.point_squared_norm, self.kernels)
        for n in range(self.n_slots, self.padded_slots()):
            self.kernels[n] = 0.0
        return 0

    cdef object squared_norms_for_kernel(self):
        """Squared norm by slot, for a user's kernel; free slots get 1, since k(0, 0) may be undefined."""
        norms = np.frombuffer(bytearray((<char *>self.squared_norms)[:self.n_slots * sizeof(double)]))
        if self.free_slots.size:
            norms[listed(&self.free_slots)] = 1.0
        return norms

    cdef int apply_kernel(self, dots, norms, other, double *out) except -1:
        """Write a user's kernel values by slot."""
        cdef int n = self.n_slots
        cdef int64_t n_read = self.n_read
        cdef Buffer buffer
        result = np.ascontiguousarray(self.kernel(dots, norms, other), dtype=np.float64)
        if result.shape != (n,):
            raise ParameterError(
                f"the kernel {self.kernel!r} gave an array of shape {result.shape} for {n} supports"
            )
        if n_read != self.n_read or n != self.n_slots:
            raise RuntimeError(IN_USE)
        buffer = buffer_of(result, b"d")
        if n:
            memcpy(out, doubles(buffer, n), n * sizeof(double))
        return 0

    cdef int write_self_kernels(self, double *kernels) except -1:
        """Write k(x, x) of each support; a free slot's value is arbitrary."""
        cdef int slot
        cdef double alike = 1.0 if self.kernel_kind == DRIFT_RBF else drift_power(1.0 + self.coef0, self.degree)
        if self.kernel_kind == DRIFT_CUSTOM:
            norms = self.squared_norms_for_kernel()
            return self.apply_kernel(norms, norms, norms, kernels)
        for slot in range(self.n_slots):
            if self.divides_by_norms or self.kernel_kind == DRIFT_RBF:
                kernels[slot] = alike
            else:
                kernels[slot] = drift_power(self.squared_norms[slot] + self.coef0, self.degree)
        return 0

    cpdef double score(self) except? -1.0:
        """Return the point's sum of coefficient * kernel; 0 within rounding of 0."""
        self.check_reader()
        if not self.score_valid:
            self.compute_score()
            if self.point_error_bound - self.point_error_bound != 0.0:  # infinite or NaN: an overflow, not a tie
                raise no_finite_value(self.kernel)
            self.score_valid = True
        return self.coefficient_factor * self.point_score

    def score_of(self, x):
        """Read an example and return its score."""
        self.read(x)
        return self.score()

    def error_bound(self):
        """Return a bound on the rounding error of `score`."""
        self.score()
        return fabs(self.coefficient_factor) * self.point_error_bound

    def write_kernels(self, out):
        """Write the kernel between the point and each slot; return the number of slots."""
        cdef Buffer buffer
        self.check_reader()
        self.compute_kernels()
        buffer = buffer_of(out, b"d", PyBUF_WRITABLE)
        if self.n_slots:
            memcpy(doubles(buffer, self.n_slots), self.kernels, self.n_slots * sizeof(double))
        return self.n_slots

    def self_kernel(self):
        """Return the kernel between the point and itself, which may have become a support."""
        cdef double squared_norm = 1.0 if self.divides_by_norms else self.point_squared_norm
        self.check_reader()
        if self.cached_self_kernel is None or squared_norm != self.cached_squared_norm:
            self.cached_self_kernel = finite_self_kernel(self.kernel, squared_norm)
            self.cached_squared_norm = squared_norm
        return self.cached_self_kernel

    # --- beyond one score ------------------------------------------------------------------------

    def class_scores(self, coefficients, scores, error_bounds):
        """Score the point under several sets of coefficients, from the same kernel values."""
        cdef Buffer by_class = buffer_of(coefficients, b"d", PyBUF_ND)
        cdef Buffer score = buffer_of(scores, b"d", PyBUF_WRITABLE)
        cdef Buffer error_bound = buffer_of(error_bounds, b"d", PyBUF_WRITABLE)
        cdef int n_classes = <int>(score.view.len // <Py_ssize_t>sizeof(double))
        self.check_reader()
        if not self.score_classes(by_class, n_classes, doubles(score, n_classes), doubles(error_bound, n_classes)):
            raise no_finite_value(self.kernel)

    cdef bint score_classes(self, Buffer by_class, int n_classes, double *score, double *error_bound) except -1:
        """Score the point under `n_classes` sets of coefficients; False on overflow."""
        cdef int c, n = self.compute_kernels()
        cdef const double *coefficients = <double *>by_class.view.buf
        cdef Py_ssize_t width = by_class.view.shape[1] if by_class.view.ndim == 2 else 0
        cdef bint finite = True
        if n_classes and (width < n or by_class.view.shape[0] != n_classes):
            raise ValueError(f"coefficients of another shape than {n_classes} rows for {n} slots")
        for c in range(n_classes):
            score[c] = drift_score_of_kernels(
                coefficients + c * width, self.kernels, n, self.relative_tolerance, error_bound + c
            )
            finite &= error_bound[c] - error_bound[c] == 0.0  # infinite terms may sum to 0
        return finite

    def nearest(self, int slot, slots_by_age=None):
        """Read a support as the point; return its nearest neighbour's slot and a ratio to merge."""
        cdef Buffer buffer = None if slots_by_age is None else buffer_of(slots_by_age, b"i")
        cdef const int32_t *by_age = self._slots_by_age if slots_by_age is None else <int32_t *>buffer.view.buf
        cdef double *ratios
        cdef double largest = 0.0
        cdef int k, j, n = self._n_supports if slots_by_age is None else <int>(buffer.view.len // sizeof(int32_t))
        self.read_slot(slot)
        self.compute_kernels()
        work = buffer_of(bytearray(self.n_slots * sizeof(double)), b"B")
        ratios = doubles(work, self.n_slots)
        self.write_self_kernels(ratios)
        drift_ratios(ratios, self.kernels, self.n_slots)
        ratios[slot] = 0.0  # so that the support is not its own neighbour
        for k in range(n):
            j = by_age[k]
            self.check_slot(j)
            largest = max(largest, ratios[j] * self.kernels[j])
        for k in range(n):
            j = by_age[k]
            if ratios[j] * self.kernels[j] >= largest * (1.0 - self.relative_tolerance) > 0.0:
                return j, ratios[j]
        return -1, 0.0

    cdef bint may_be_support(self) noexcept:
        """Whether a support may equal the point, whose kernel values were just computed."""
        cdef int slot
        cdef double dot, sum, squared_norm = self.point_squared_norm * self.point_cosine_factor**2
        for slot in range(self.n_slots):
            dot = (<double *>self.dots)[slot] if self.wide else (<float *>self.dots)[slot]
            dot *= self.dot_factors[slot] * self.point_dot_factor
            sum = self.squared_norms[slot] * self.cosine_factors[slot] ** 2 + squared_norm
            if sum - 2.0 * dot <= same_example_tolerance * squared_norm:
                return True
        return False
