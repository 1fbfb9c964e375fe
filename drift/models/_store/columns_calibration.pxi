# Probabilities from scores: the compiled form of calibration.py, which explains the rules.
#
# The store's steps and batches call `learn_score` and `learn_scores`, Python the rest.

cdef double RATE = calibration.RATE, DECAY = calibration.DECAY
cdef double MIN_SLOPE = calibration.MIN_SLOPE, MAX_SLOPE = calibration.MAX_SLOPE
cdef double MAX_SQUARE = calibration.MAX_SQUARE


cdef class Calibration:
    """One slope from scores to probabilities, learnt online beside a model."""

    cdef readonly double slope, mean_square, total_weight
    cdef double old_slope, old_mean_square, old_total_weight  # before the update under way

    def __init__(self, double slope=1.0, double mean_square=0.0, double total_weight=0.0):
        self.slope, self.mean_square, self.total_weight = slope, mean_square, total_weight

    @property
    def score_factor(self):
        """Factor of a score in the logistic function or softmax."""
        return self.current_score_factor()

    cdef inline double current_score_factor(self) noexcept:
        return self.slope / sqrt(self.mean_square) if self.mean_square else 1.0

    def learn(self, double score, double sign, double w):
        """Learn from the score of an example, its label's sign and weight."""
        self.learn_score(score, sign, w)

    cdef inline void learn_score(self, double score, double sign, double w) noexcept:
        """Learn from a score, as `learn` does."""
        cdef double margin
        self.learn_square(score * score, w)
        margin = sign * self.current_score_factor() * score
        self.step(margin / (1.0 + exp(min(margin, 700.0))), w)

    def learn_classes(self, scores, int k, double w):
        """Learn from the scores of all classes, the index `k` of the label, and the weight `w`."""
        cdef Buffer score = buffer_of(scores, b"d")
        self.learn_scores(doubles(score, k + 1), <int>(score.view.len // <Py_ssize_t>sizeof(double)), k, w)

    cdef void learn_scores(self, const double *scores, int n, int k, double w) noexcept:
        """Learn from the scores of `n` classes, as `learn_classes` does."""
        cdef int c
        cdef double mean = 0.0, square = 0.0, best = scores[0], factor, power, powers = 0.0, terms = 0.0
        if n < 2:
            return
        for c in range(n):
            mean += scores[c]
            best = max(best, scores[c])
        mean /= n
        for c in range(n):
            square += (scores[c] - mean) * (scores[c] - mean)
        self.learn_square(2.0 * square / (n - 1), w)
        factor = self.current_score_factor()
        for c in range(n):
            power = exp(factor * (scores[c] - best))
            powers += power
            terms += power * (scores[c] - best)
        self.step(factor * (scores[k] - best - terms / powers), w)

    cdef inline void learn_square(self, double square, double w) noexcept:
        """Add a square to the mean."""
        self.total_weight = DECAY * self.total_weight + w
        self.mean_square += (min(square, MAX_SQUARE) - self.mean_square) * (w / self.total_weight)

    cdef inline void step(self, double gain, double w) noexcept:
        """Make a gradient step on the slope's logarithm. The slope at most doubles or halves."""
        cdef double step = 1.0 + min(RATE * w * fabs(gain), 1.0)
        self.slope = min(max(self.slope * step if gain > 0.0 else self.slope / step, MIN_SLOPE), MAX_SLOPE)

    def state(self):
        """Return the constructor's arguments."""
        return [self.slope, self.mean_square, self.total_weight]

    cpdef start(self):
        """Start an update, which can be undone until it is finished."""
        self.old_slope, self.old_mean_square, self.old_total_weight = self.slope, self.mean_square, self.total_weight

    cpdef undo(self):
        """Restore the values before the update."""
        self.slope, self.mean_square, self.total_weight = self.old_slope, self.old_mean_square, self.old_total_weight

    def finish(self):
        """Finish the update."""
