import pytest

from drift.experiments.reproduction.curves import best, curves, difference, error
from drift.experiments.reproduction.tables import chunk_table


def test_curves_group_by_shifts_model_and_ascending_parameter(run):
    records = [
        run("LBP", 100, shifts=7),
        run("LBP", 50, shifts=7),
        run("Perceptron", shifts=0),
        run("LBP", 50, shifts=7, index=1),
    ]
    groups = curves(records)
    assert list(groups) == [0, 7]
    assert list(groups[7]["LBP"]) == [50, 100]
    assert [record["index"] for record in groups[7]["LBP"][50]] == [0, 1]
    assert list(groups[0]["Perceptron"]) == [None]


def test_error_is_in_percent_over_streams_and_seeds(run):
    assert error([run(mistakes=10), run(mistakes=14)]) == pytest.approx((12.0, 8**0.5))
    assert error([run(mistakes=10)]) == (10.0, 0.0)


def test_best_is_the_lowest_mean_and_of_equals_the_smallest(run):
    curve = {50: [run(mistakes=9)], 100: [run(mistakes=5), run(mistakes=7)], 200: [run(mistakes=6)]}
    assert best(curve) == 100


def test_difference_pairs_streams_and_averages_seeds(run):
    # stream 0: (10 + 12) / 2 - 8 = 3, stream 1: 25 - 24 = 1: mean 2, deviation sqrt(2), so the
    # standard error is 1; Student's t for two streams is 12.706 in every table
    first = [run(mistakes=10), run(mistakes=12, seed=1), run(mistakes=25, index=1)]
    second = [run(mistakes=24, index=1), run(mistakes=8)]
    assert difference(first, second) == pytest.approx((2.0, 12.706), abs=1e-3)
    assert not difference(first, second).above
    assert str(difference(first, second)) == "+2.00 ± 12.71"


def test_four_streams_need_more_than_two_standard_errors(run):
    # -1, -4, -1, -4: mean -2.5, deviation sqrt(3), standard error 0.866; t is 3.182
    first = [run(mistakes=m, index=i) for i, m in enumerate([9, 6, 9, 6])]
    second = [run(mistakes=10, index=i) for i in range(4)]
    assert difference(first, second) == pytest.approx((-2.5, 2.756), abs=1e-3)
    assert not difference(first, second).below


def test_one_stream_decides_nothing(run):
    gap = difference([run(mistakes=3)], [run(mistakes=4)])
    assert gap == (-1.0, float("inf"))
    assert not gap.below


def test_a_row_of_the_table(run, tracked):
    records = [
        run("RBP", 50, mistakes=10, supports=40, seconds=0.002),
        run("RBP", 50, mistakes=14, supports=50, seconds=0.004, seed=1),
        run("RBP", 50, mistakes=14, supports=50, seconds=0.004, seed=2),
        run("Perceptron", mistakes=7),
    ]
    assert tracked(records).rows("table") == [
        {
            "shifts": 0,
            "model": "Perceptron",
            "parameters": "",
            "error": 7.0,
            "error_std": 0.0,
            "supports": 7.0,
            "supports_std": 0.0,
            "microseconds": 10.0,
            "microseconds_std": 0.0,
            "runs": 1,
        },
        {
            "shifts": 0,
            "model": "RBP",
            "parameters": "budget 50",
            "error": 12.667,
            "error_std": 2.309,
            "supports": 46.7,
            "supports_std": 5.8,
            "microseconds": 33.33,
            "microseconds_std": 11.55,
            "runs": 3,
        },
    ]


def test_the_summary_keeps_the_best_setting_of_each_model_and_group(run, tracked):
    records = [
        run("LBP", budget, mistakes, shifts=shifts)
        for shifts, budget, mistakes in [(0, 50, 9), (0, 100, 8), (7, 50, 11), (7, 100, 12)]
    ]
    rows = tracked(records).rows("summary")
    assert [(row["shifts"], row["parameters"]) for row in rows] == [
        (0, "budget 100"),
        (7, "budget 50"),
    ]


def test_supports_by_chunk_stand_beside_the_papers_where_chunks_are_as_long(run):
    chunks = [
        run("Perceptron", supports=supports, n_samples=2500, shifts=7) for supports in (250, 270)
    ]
    chunks.append(run("Perceptron", supports=30, n_samples=123, shifts=0))
    chunks.append(run("SOP", supports=240, n_samples=2500, shifts=7))
    short, long, second_order = chunk_table(chunks)
    assert (short["chunk_size"], short["supports"], short["paper"]) == (123, 30.0, None)
    assert (second_order["model"], second_order["paper"]) == ("SOP", 241.0)
    (other,) = chunk_table([run("Perceptron", n_samples=2500, stream="a9a", targets=["+1"])])
    assert (other["chunk_size"], other["paper"], other["paper_std"]) == (2500, None, None)
    assert long == {
        "model": "Perceptron",
        "chunk_size": 2500,
        "shifts": 7,
        "chunks": 2,
        "supports": 260.0,
        "supports_std": 14.14,
        "paper": 260.0,
        "paper_std": 32.98,
    }
