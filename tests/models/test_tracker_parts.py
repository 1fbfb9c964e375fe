"""Each part of the Tracker by hand, on either core: what an example changes, and by how much.

The tests of agreement would not see an error that both cores have.
"""

import math

import numpy as np
import pytest

from drift.models import Tracker
from drift.models._tracker import tables as c
from tests.models.tracker_cores import NOTHING, arrays, changed

pytestmark = pytest.mark.usefixtures("core")


def tracker(
    scale="dense", budget=9, kernels=(0.0, 2.0), rates=(0.5,), forgetting=(0.9,), *, late=None
):
    return Tracker(
        budget, kernels=kernels, rates=rates, forgetting=forgetting, scale=scale, late=late
    )


def biased(scores, **parameters):
    """A model of two classes, over whose linear members' biases there are other scores."""
    model = tracker(**parameters)
    for y in ("no", "yes"):
        model.learn_one({}, y, NOTHING)
    return saying(model, scores)


def saying(model, scores):
    """The model with these biases of its linear members."""

    def change(linear):
        linear[0, 0, :3] = scores

    return changed(model, linear=change)


# --- scales --------------------------------------------------------------------------------------


def test_a_dense_feature_is_standardised_and_divided_by_the_mean_norm():
    model = tracker()
    model.learn_one({"a": 1.0, "b": 7.0}, "no")  # a deviation of 0
    model.learn_one({"a": 3.0, "b": 7.0}, "yes")  # mean 2, deviation 1; norms 0 and 1
    assert model.supports == [{}, {"a": pytest.approx(math.sqrt(2.0))}]
    model.learn_one({"a": 8.0, "b": 7.0}, "no")  # mean 4, variance 26 / 3
    z = 4.0 / math.sqrt(26.0 / 3.0)
    expected = z / math.sqrt((1.0 + z * z) / 3.0)
    assert model.supports[2] == {"a": pytest.approx(expected)}


def test_a_sparse_row_is_divided_by_its_norm():
    model = tracker("sparse")
    model.learn_one({"a": 3.0, "b": 4.0, "c": 0.0, "d": None}, "no")
    assert sorted(model.supports[0].values()) == pytest.approx([0.6, 0.8])


def scores_alike(model, one, other):
    return model.predict_proba_one(one) == model.predict_proba_one(other)


def missing(values):
    """Whether, after these values of `a`, its absence is as NaN, as None is in any case."""
    model = tracker()
    for t, a in enumerate(values):
        x = {"b": t % 3} if a is None else {"a": a, "b": t % 3}
        model.learn_one(x, ("no", "yes")[t % 2], NOTHING if t < 3 else 1.0)
    x = {"b": 1.0}
    assert scores_alike(model, x | {"a": None}, x | {"a": math.nan})
    return scores_alike(model, x, x | {"a": math.nan})


def test_an_absent_feature_is_missing_once_it_was_given_as_0():
    assert missing([2.0, 0.0, 1.0, 2.0, None, None, 2.0, 1.0, None] * 2)


def test_an_absent_feature_is_missing_where_most_have_it_and_0_is_far_off():
    assert missing([20.0, 21.0, None, 22.0, 20.0, 20.5] * 2)


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0, None, -1.0, 2.0, 0.5] * 2, [20.0, 21.0, None, None, None, 20.0] + [None] * 6],
    ids=["0 is near", "few have it"],
)
def test_an_absent_feature_is_0_else(values):
    assert not missing(values)


def test_a_feature_that_jumps_is_standardised_anew():
    model = tracker()
    for t in range(60):
        model.learn_one({"a": math.sin(t)}, t % 2)
    before = arrays(model)["features"][0]
    assert before[c.FEATURE.index("count")] == 60.0
    assert abs(before[c.FEATURE.index("mean")]) < 0.1
    counts = []
    for t in range(60, 110):
        model.learn_one({"a": 1000.0 + math.sin(t)}, t % 2)
        feature = dict(zip(c.FEATURE, arrays(model)["features"][0], strict=True))
        counts.append(feature["count"])
        if feature["count"] == 2.0:  # of this value alone
            assert feature["mean"] == feature["last"] == 1000.0 + math.sin(t)
            assert feature["variance"] == 0.0
    assert counts.count(2.0) == 1
    assert feature["mean"] == pytest.approx(1000.0, abs=0.5)
    assert feature["variance"] == pytest.approx(0.5, abs=0.2)


def test_one_value_far_off_moves_the_mean_by_a_bounded_step():
    model = tracker()
    for t in range(20):
        model.learn_one({"a": float(t % 2)}, t % 2)  # mean 1/2, variance 1/4
    model.learn_one({"a": 1e9}, 0)
    mean = arrays(model)["features"][0, c.FEATURE.index("mean")]
    assert mean == pytest.approx(0.5 + c.OUTLIER * 0.5 / 21.0)


# --- members -------------------------------------------------------------------------------------


def test_a_kernel_member_makes_a_support_of_its_gradient():
    """Over sparse rows: the first example has no score, and the next that of one support."""
    model, kept = tracker("sparse"), 1.0 - 0.9 / 9
    model.learn_one({"a": 1.0}, "no")
    x = {"a": 3.0, "b": 4.0}
    actual = arrays(model)
    assert (actual["factors"] * actual["coefficients"][0, :, 0]).tolist() == pytest.approx(
        [-0.25] * 2
    )
    model.learn_one(x, "yes")
    actual = arrays(model)
    effective = actual["factors"] * actual["coefficients"][0].T
    assert effective[0].tolist() == pytest.approx([-0.25 * kept] * 2)
    # The first is no longer what it was when the second was read, before it faded.
    for member, kernel in enumerate((0.6, math.exp(-2.0 * (2.0 - 2.0 * 0.6)))):
        p = 1.0 / (1.0 + math.exp(0.25 * kernel))
        assert effective[1, member] == pytest.approx(0.5 * (1.0 - p))


def test_a_kernel_is_exact_to_the_last_bits_of_float32():
    """As a member's loss tells, whose score is the kernel of one support."""
    for angle in np.arange(0.02, 1.6, 0.02).tolist():
        model = tracker("sparse")
        model.learn_one({"a": 1.0}, "no")

        def one(coefficients):
            coefficients[0, 1] = 1.0

        changed(model, coefficients=one, factors=lambda factors: factors.fill(1.0))
        before = arrays(model)["losses"][1]
        x = {"a": math.cos(angle), "b": math.sin(angle)}
        model.learn_one(x, "yes")
        unit = np.float32(list(x.values())).astype(float)
        kernel = math.exp(-2.0 * (1.0 + unit @ unit - 2.0 * unit[0]))
        actual = -math.log(math.expm1(arrays(model)["losses"][1] - before))
        assert actual == pytest.approx(kernel, rel=1.5 * 2.0**-23, abs=0.0), angle


def test_the_support_that_is_evicted_leaves_its_coefficients_to_the_nearest():
    model, kept = tracker("sparse", budget=2), 1.0 - 0.9 / 2
    rows = [{"a": 1.0}, {"a": 3.0, "b": 4.0}, {"c": 1.0}]
    for x, y in zip(rows[:2], ("no", "yes"), strict=True):
        model.learn_one(x, y)
    before = arrays(model)
    model.learn_one(rows[2], "no", 2.0)
    state = model._core.state()
    evicted, stays, after = state["free"], 1 - state["free"], arrays(model)
    assert model.n_supports == 2
    shares = np.array([0.6, math.exp(-2.0 * (2.0 - 2.0 * 0.6))])
    was = before["factors"] * before["coefficients"][0].T
    actual = after["factors"] * after["coefficients"][0].T
    assert actual[stays] == pytest.approx(kept * (was[stays] + shares * was[evicted]), rel=1e-5)
    assert not actual[evicted].any()
    assert actual[2] == pytest.approx(-0.5 * 2.0 * 0.5, rel=1e-2)  # it has no score but of rounding


def test_an_example_of_small_loss_is_no_support():
    model = biased([9.0, 0.0, 0.0])

    def all_on_it(gates):
        gates[:] = 0.0
        gates[:, 2] = 1.0

    changed(model, gates=all_on_it)
    n = model.n_supports
    model.learn_one({}, "yes")
    assert model.n_supports == n
    model.learn_one({}, "no")
    assert model.n_supports == n + 1


def test_the_steps_of_the_linear_members():
    """Over sparse rows, an input of 1: a gradient of -1/2, and a curvature of 1/4."""
    model = tracker("sparse")
    model.learn_one({"a": 3.0}, "no")
    [cells] = arrays(model)["linear"]
    [place] = np.flatnonzero(cells[1:, 0])
    bias, cell = cells[0], cells[1 + place]
    slow, fast = c.DESCENT_SPARSE
    variance = 1.0 + 0.25 * 2.0 * c.PRIOR  # of the bias and the input
    kalman, reduced = -0.5 * c.PRIOR / variance, 0.25 * c.PRIOR**2 / variance
    assert cell == pytest.approx([-slow / 2, -fast / 2, kalman, reduced], rel=1e-5)
    slower = c.SPARSE_BIAS**2
    assert bias[:2] == pytest.approx([-slower * slow / 2, -slower * fast / 2], rel=1e-5)
    assert bias[2:] == pytest.approx(cell[2:])


def test_the_steps_of_the_linear_members_over_the_context():
    """The one value deviates from nothing, so that only the bias counts."""
    model = tracker()
    model.learn_one({"a": 7.0}, "only")
    [[bias, *others]] = arrays(model)["context_linear"]
    variance = 1.0 + 0.25 * c.PRIOR
    kalman, reduced = -0.5 * c.PRIOR / variance, 0.25 * c.PRIOR**2 / variance
    assert bias == pytest.approx([-c.ADAGRAD, kalman, 0.25, reduced], rel=1e-5)
    assert not np.any(others)
    model.learn_one({"a": 7.0}, "only")
    [[bias, *others]] = arrays(model)["context_linear"]
    p = 1.0 / (1.0 + math.exp(c.ADAGRAD))
    step = c.ADAGRAD * p / math.sqrt(0.25 + p * p)
    assert bias[[0, 2]] == pytest.approx([-c.ADAGRAD - step, 0.25 + p * p], rel=1e-5)
    assert not np.any(others)


def test_what_splines_learn_of_an_example():
    """Of a the mean is 2 and the deviation 1 before, of b 2 and 0, of c as of a."""
    model, r = tracker(), math.sqrt(3 / 7)  # half a deviation: r (1 - 1/3) = sqrt(variance) / 2
    for a, b, w in ((1.0, 3.0, NOTHING), (3.0, 1.0, NOTHING), (2.0 + r, 2.0 - r, 1.0)):
        model.learn_one({"a": a, "b": 2.0, "c": b}, "only", w)
    third = 1 / math.sqrt(3)  # three curves
    a, b, cs = 1, 1 + 9, 1 + 18
    values = {0: 1.0} | dict.fromkeys((a + 5, b + 4, cs + 3), third)
    # Their squares are 1 + 1; p (1 - p) is 1/4, the gradient -1/2.
    total = 1 + c.PRIOR * 2 / 4
    [[weights, reduced]] = arrays(model)["splines"]
    expected = np.zeros((2, 1 + 27))
    for cell, v in values.items():
        near = v if cell == 0 else v / third
        gain = c.PRIOR**2 * v * v / 4 / total
        expected[:, cell] = -c.PRIOR / 2 * v / total, gain - c.SPLINE_WALK * near
    assert weights == pytest.approx(expected[0], abs=1e-6)
    assert reduced == pytest.approx(expected[1], abs=1e-6)


def test_what_the_bias_of_splines_learns_of_a_light_example():
    """Its variance goes down by less than 1."""
    model, w = tracker(), 0.02
    model.learn_one({}, "only", w)
    total = 1.0 + c.PRIOR * w / 4.0
    [[weights, reduced]] = arrays(model)["splines"]
    assert weights[0] == pytest.approx(-w / 2.0 * c.PRIOR / total)
    assert reduced[0] == pytest.approx(c.PRIOR**2 * w / 4.0 / total - c.SPLINE_WALK)


@pytest.mark.parametrize(
    ("name", "walk"),
    [("splines", c.SPLINE_WALK), ("context_splines", c.CONTEXT_SPLINE_WALK)],
)
def test_what_splines_learn_of_a_first_value(name, walk):
    """It is on the middle knot of its curve; from means that there are not nothing deviates."""
    model = tracker()
    model.learn_one({"a": 7.0}, "only")
    total = 1.0 + c.PRIOR * 2.0 / 4.0
    [[weights, reduced]] = arrays(model)[name]
    x = np.zeros(len(weights))
    x[[0, 5]] = 1.0
    assert weights == pytest.approx(-c.PRIOR / 2.0 / total * x)
    assert reduced == pytest.approx((c.PRIOR**2 / 4.0 / total - walk) * x, rel=1e-5)


def test_a_third_class_halves_what_the_members_learnt():
    model = tracker()
    for t in range(12):
        model.learn_one({"a": float(t % 4), "b": float(t % 3)}, ("no", "yes")[t % 2])
    before = arrays(model)
    model.learn_one({"a": 1.0, "b": 1.0}, "third", NOTHING)
    after = arrays(model)
    for name, weights in (("coefficients", ...), ("linear", (..., slice(3))), ("splines", 0)):
        row, rows = before[name][0][weights], [each[weights] for each in after[name]]
        assert len(rows) == 4  # and one to come
        kept = [part[tuple(slice(n) for n in row.shape)] for part in rows]
        for part, share in zip(kept, (-0.5, 0.5, 0.0, 0.0), strict=True):
            assert part == pytest.approx(share * row, abs=1e-6)
    for row, share in ((1, 1.0), (2, 0.0), (3, 0.0)):
        expected = share * before["linear"][0, :, 3:]
        assert after["linear"][row, :, 3:] == pytest.approx(expected, abs=1e-6)
    assert list(model.predict_proba_one({})) == ["no", "yes", "third"]


# --- gates and calibration -----------------------------------------------------------------------


def test_a_step_of_the_gates():
    """Two members have scores, 3 and -2; the others none, and keep their weights."""
    model = biased([3.0, 0.0, -2.0])
    before = arrays(model)
    n = before["gates"].shape[1]
    model.learn_one({}, "no")  # so that the margins are -3 and 2
    after = arrays(model)
    for g, walk in enumerate(c.GATE_WALKS):
        variance = before["covariances"][g, 0, 0] + walk
        u = 1.0 / (1.0 + math.exp(-(3.0 - 2.0) / n))
        share = 1.0 / (1.0 + u * (1.0 - u) * variance * (9.0 + 4.0))
        z = np.zeros(n)
        z[[2, 4]] = -3.0, 2.0
        expected = before["gates"][g] + u * share * variance * z
        assert after["gates"][g] == pytest.approx(expected, abs=1e-6)
        left = variance * np.eye(n) - u * (1.0 - u) * share * variance**2 * np.outer(z, z)
        assert after["covariances"][g] == pytest.approx(left, abs=1e-6)


def test_a_step_of_the_gates_where_the_label_is_late():
    """Members' scores were 3 and -2 and are -1 and 4: a step by each, weighted by its share."""
    model = biased([3.0, 0.0, -2.0], late=True)
    model.predict_one({})
    model = saying(model, [-1.0, 0.0, 4.0])
    before = arrays(model)
    model.learn_one({}, "no")
    after = arrays(model)
    for g, now in enumerate(c.LATE_CURRENT_SHARE):
        weights, covariance = before["gates"][g], before["covariances"][g]
        covariance = covariance + c.LATE_WALKS[g] * np.eye(len(weights))
        for margins, share in (((-3.0, 2.0), 1.0 - now), ((1.0, -4.0), now)):
            z = np.zeros(len(weights))
            z[[2, 4]] = margins
            u = 1.0 / (1.0 + math.exp(weights @ z))
            curvature = share * u * (1.0 - u) * np.outer(z, z)
            covariance = np.linalg.inv(np.linalg.inv(covariance) + curvature)
            weights = weights + share * u * covariance @ z
        assert after["gates"][g] == pytest.approx(weights, abs=1e-11)
        assert after["covariances"][g] == pytest.approx(covariance, abs=1e-11)


def stepped(before, g, number, walk, steps):
    """Weights and covariance of a gate after steps by scores of rows, each with its weight."""
    weights, covariance = before["gates"][g], before["covariances"][g]
    covariance = covariance + walk * np.eye(len(weights))
    for scores, w in steps:
        others = np.exp(scores @ weights)
        others /= others.sum()
        others[number] = 0.0
        u = others.sum()
        z = scores[number] - others @ scores / u
        covariance = np.linalg.inv(np.linalg.inv(covariance) + w * u * (1.0 - u) * np.outer(z, z))
        weights = weights + w * u * covariance @ z
    return weights, covariance


def of_rows(model, rows):
    """The model with biases of two linear members in each row, and the scores of all members."""
    scores = np.zeros((len(rows), arrays(model)["gates"].shape[1]))
    scores[:, [2, 4]] = rows

    def change(linear):
        linear[:, 0, :3] = scores[:, 2:5]

    return changed(model, linear=change), scores


@pytest.mark.parametrize("w", [1.0, 0.25])
def test_a_step_of_the_gates_among_three_classes(w):
    model = tracker()
    for y in ("a", "b", "c"):
        model.learn_one({}, y, NOTHING)
    model, scores = of_rows(model, [(1.0, 0.5), (0.0, 2.0), (-1.0, 0.0), (0.5, 0.0)])
    before = arrays(model)
    model.learn_one({}, "b", w)
    for g, walk in enumerate(c.GATE_WALKS):
        weights, covariance = stepped(before, g, 1, walk, [(scores, w)])
        assert arrays(model)["gates"][g] == pytest.approx(weights, abs=1e-6)
        assert arrays(model)["covariances"][g] == pytest.approx(covariance, abs=1e-6)


@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_a_ticket_of_fewer_classes(classes):
    """Its log-odds are halved between two; a newer class had the scores of its last row."""
    model = tracker(late=True)
    for y in classes:
        model.learn_one({}, y, NOTHING)
    first = (
        [(3.0, -2.0)] if len(classes) == 2 else [(1.0, 0.5), (0.0, 2.0), (-1.0, 0.0), (0.5, 1.0)]
    )
    model, then = of_rows(model, first)
    model.predict_one({})
    model.learn_one({"x": 1.0}, "new", NOTHING)
    after = [(1.0, 0.0), (0.0, -1.0), (0.5, 0.5), (0.0, 0.0), (0.25, 0.0)][: len(classes) + 2]
    model, now = of_rows(model, after)
    then = np.vstack(
        [-then / 2, then / 2, 0 * then, 0 * then] if len(then) == 1 else [then, then[3]]
    )
    before = arrays(model)
    model.learn_one({}, "b")
    for g, share in enumerate(c.LATE_CURRENT_SHARE):
        steps = [(then, 1.0 - share), (now, share)]
        weights, covariance = stepped(before, g, 1, c.LATE_WALKS[g], steps)
        assert arrays(model)["gates"][g] == pytest.approx(weights, abs=1e-5)
        assert arrays(model)["covariances"][g] == pytest.approx(covariance, abs=1e-5)


def test_mistakes_and_losses_are_counted_by_weight():
    """Of two classes a score of 0 is for the first one."""
    model = biased([3.0, 0.0, -2.0])
    before = arrays(model)
    model.learn_one({}, "no", 0.5)
    after = arrays(model)
    errors, losses = (after[name] - before[name] for name in ("errors", "losses"))
    assert errors[2:5] == pytest.approx([0.5, 0.0, 0.0])
    expected = [0.5 * math.log1p(math.exp(s)) for s in (3.0, 0.0, -2.0)]
    assert losses[2:5] == pytest.approx(expected)
    assert (after["sums"] - before["sums"])[c.TOTAL] == pytest.approx(0.5)


def test_what_is_no_evidence_is_in_no_record():
    model = biased([3.0, 0.0, -2.0], late=True)
    model.predict_one({})
    before = arrays(model)
    model.learn_one({"x": 1.0}, "no")
    after = arrays(model)
    for name in ("errors", "losses"):
        assert after[name].tolist() == before[name].tolist()
    assert (after["sums"] - before["sums"])[[c.TOTAL, c.LEARNT]].tolist() == [0.0, 1.0]


def test_a_third_class_is_as_great_a_surprise_as_there_is():
    model = biased([3.0, 0.0, -2.0])
    before = arrays(model)
    model.learn_one({}, "third", 0.5)
    after, loss = arrays(model), -0.5 * math.log(c.LEAST_PROBABILITY)
    assert after["losses"] - before["losses"] == pytest.approx([loss] * len(after["losses"]))
    expected = c.LOSS_DECAY * before["sums"][c.MEAN_LOSS] + loss
    assert after["sums"][c.MEAN_LOSS] == pytest.approx(expected)


def even_maps():
    """A model whose maps weigh the same, and their probabilities of the second class."""
    model = biased([8.0, 0.0, 0.0])

    def evenly(maps):
        maps[:] = 1.0 / len(maps)

    model = changed(model, maps=evenly)
    n = arrays(model)["gates"].shape[1]
    odds = math.exp(8.0 / n)
    yes = c.LEAST_PROBABILITY + (1.0 - 2.0 * c.LEAST_PROBABILITY) * odds / (1.0 + odds)
    powers = [yes**slope / (yes**slope + (1.0 - yes) ** slope) for slope in c.SLOPES]
    return model, np.array([(1.0 - floor) * p + floor / 2.0 for p in powers for floor in c.FLOORS])


def test_the_probability_is_the_mean_of_the_maps():
    model, maps = even_maps()
    assert model.predict_proba_one({})["yes"] == pytest.approx(np.mean(maps), abs=1e-7)


@pytest.mark.parametrize("w", [1.0, 0.25])
def test_maps_are_multiplied_by_their_probabilities_and_share_a_little(w):
    model, maps = even_maps()
    model.learn_one({}, "yes", w)
    powers = np.tile(maps**w, len(c.GATE_WALKS))
    expected = (1.0 - c.MAP_SHARE) * powers / powers.sum() + c.MAP_SHARE / len(powers)
    assert arrays(model)["maps"] == pytest.approx(expected, abs=1e-8)


def test_exponentials_and_logarithms_are_those_of_the_library():
    """To the last digits but one, over both sides of a whole power of two."""

    def on_the_first(gates):
        gates[:] = 0.0
        gates[:, 2] = 1.0

    for score in np.arange(-3.5, 3.5, 0.1875).tolist():
        model = changed(biased([score, -score, score / 2.0]), gates=on_the_first)
        yes = c.LEAST_PROBABILITY + (1.0 - 2.0 * c.LEAST_PROBABILITY) / (1.0 + math.exp(-score))
        powers = [yes**slope / (yes**slope + (1.0 - yes) ** slope) for slope in c.SLOPES]
        maps = [(1.0 - floor) * p + floor / 2.0 for p in powers for floor in c.FLOORS]
        actual, before = model.predict_proba_one({})["yes"], arrays(model)
        assert actual == pytest.approx(np.dot(before["maps"], maps * len(c.GATE_WALKS)), abs=1e-15)
        model.learn_one({}, "yes")
        losses = (arrays(model)["losses"] - before["losses"])[2:5]
        scores = (score, -score, score / 2.0)
        assert losses == pytest.approx([math.log1p(math.exp(-s)) for s in scores], abs=2e-15)


def test_maps_are_weighed_by_the_probability_that_they_gave_the_class():
    model = biased([80.0, 0.0, 0.0])
    weights = [arrays(model)["maps"]]
    for y in ("yes", "no"):
        model.learn_one({}, y)
        weights.append(arrays(model)["maps"])
    assert [maps.sum() for maps in weights] == pytest.approx([1.0] * 3)
    steep, flat = len(c.FLOORS), len(c.FLOORS) - 1  # of the first gate: steepest, and flattest
    assert weights[0][steep] < weights[1][steep]
    assert weights[0][flat] > weights[1][flat]
    assert weights[1][flat] < weights[2][flat]


def test_a_weight_scales_a_gradient_step():
    gains = []
    for w in (0.25, 0.5):
        model = tracker("sparse")
        model.learn_one({"a": 1.0}, "no", w)
        gains.append(arrays(model)["linear"][0, 0, 0])
    assert gains[1] == pytest.approx(2.0 * gains[0])
