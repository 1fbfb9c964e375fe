# A step of a binary model: the point's score, then an update unless the model needs none.
#
# This is `KernelClassifier._step` (drift/models/_template/binary.py) without the calls that most examples do not need.
# `learn_with` takes it for one example, `Batches.learn_rows_with` for the rows of a batch.

cdef class Steps(Changes):
    """The layer that lets a model learn the point. `stepped_model.py` says what it asks of the model."""

    def learn_with(self, x, y, double sign, model):
        """Read an example, let a model learn it, and return the score before the update."""
        cdef double score
        self.read(x)
        score = self.score()
        if not self.try_without_update(y, sign, score, model._update_margin, model):
            self.step(x, y, sign, score, model)
        return score

    cdef bint try_without_update(self, y, double sign, double score, double margin, model) except -1:
        """Learn an example that changes only the calibration; False for any other.

        Its margin is above ``model._update_margin``, and the model would not adopt its label.
        """
        if sign * score <= margin or self.would_adopt(y, model):
            return False
        self.calibration.learn_score(score, sign, self.weight_of(model))
        return True

    cdef int step(self, x, y, double sign, double score, model) except -1:
        """Let a model learn the point in one update, as `KernelClassifier._step` does."""
        cdef double weight = self.weight_of(model)
        cdef bint outermost = self.guard.enter()
        cdef dict attributes
        self.step_example = <PyObject *>x  # `add` need not compare it with the point
        try:
            self.guard.join(model)
            attributes = attributes_of(model)
            if sign * score <= 0.0:
                attributes["n_mistakes"] += 1
            if model._should_update(x, sign, score):
                attributes["n_updates"] += 1
                model._update(x, sign, score)
            self.calibration.learn_score(score, sign, weight)
            if self.would_adopt(y, model):
                model._adopt(y)
        except:
            self.guard.undo(outermost)
            raise
        finally:
            self.step_example = NULL
        self.guard.finish(outermost)
        return 0

    cdef inline double weight_of(self, model) except? -1.0:
        """Weight of the example: other than 1 only within the update that `_with_weight` starts."""
        return model._weight if self.guard.updating else 1.0

    @cython.boundscheck(True)  # labels may come from a damaged checkpoint
    cdef bint would_adopt(self, y, model) except -1:
        """Whether a model would adopt a label, that is, predict another kind of labels from now on.

        Most labels are of the kind known. Then the model need not be asked, except while it has
        `_only_sign`; `SteppedModel` says when that is.
        """
        cdef dict attributes = attributes_of(model)
        cdef bint is_known = type(y) is bool or type(y) is type(attributes["_labels"][0])
        if is_known and attributes["_kind"] != "any" and "_only_sign" not in attributes:
            return False
        return model._would_adopt(y)
