# The vote of a VotedPerceptron. It is a function, not a method of the store, since one algorithm alone needs it. It
# reads the store's kernel values in place.

def prefix_votes(Scores store not None, slots_by_age, coefficients, votes, bint averaged):
    """Score the point under all prefixes of an expansion; return their vote and the last score."""
    cdef Buffer buffer = None if slots_by_age is None else buffer_of(slots_by_age, b"i")
    cdef const int32_t *slot = store._slots_by_age if slots_by_age is None else <int32_t *>buffer.view.buf
    cdef Py_ssize_t k, n = store._n_supports if slots_by_age is None else buffer.view.len // <Py_ssize_t>sizeof(int32_t)
    cdef Buffer coefficient_buffer = buffer_of(coefficients, b"d"), votes_buffer = buffer_of(votes, b"d")
    cdef const double *coefficient = doubles(coefficient_buffer, n)
    cdef const double *prefix_vote = doubles(votes_buffer, n + 1) + 1  # of each prefix but the empty one
    cdef double term, sum = 0.0, magnitude = 0.0, score = 0.0, vote = 0.0, vote_magnitude = 0.0
    store.check_reader()
    store.compute_kernels()
    for k in range(n):
        store.check_slot(slot[k])
        term = coefficient[k] * store.kernels[slot[k]]
        sum += term
        magnitude += fabs(term)
        score = 0.0 if fabs(sum) <= store.relative_tolerance * magnitude else sum
        if not averaged:
            vote += prefix_vote[k] * ((score > 0.0) - (score < 0.0))
        else:
            vote += prefix_vote[k] * score
            vote_magnitude += prefix_vote[k] * magnitude
    return (0.0 if averaged and fabs(vote) <= store.relative_tolerance * vote_magnitude else vote), score
