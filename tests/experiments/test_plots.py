import sys

import pytest
from matplotlib.path import Path
from matplotlib.text import Text

from drift.errors import MissingExtraError
from drift.experiments import plots
from drift.experiments.comparison import figures


@pytest.fixture
def results(run, tracked):
    records = []
    for shifts in (0, 3, 7):
        for index in (0, 1):
            records.append(run("Perceptron", mistakes=12, shifts=shifts, index=index))
            for decay, mistakes in ((0.5, 11), (1.0, 13)):
                records.append(run("SPA", decay, mistakes, shifts=shifts, index=index))
            for model in ("RBP", "LBP", "Forgetron"):
                for budget, mistakes in ((50, 20), (100, 10 + 2 * index), (200, 12)):
                    records.append(run(model, budget, mistakes, shifts=shifts, index=index))
    return tracked(records)


def line(panel, name):
    (result,) = [line for line in panel.get_lines() if line.get_label() == name]
    return result


def test_error_vs_budget_has_a_panel_a_group_with_means_bands_and_baselines(results):
    figure = results.plot("error_vs_budget")
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title() for panel in panels] == ["no shift", "3 shifts", "7 shifts"]
    assert line(panels[0], "LBP").get_xydata().tolist() == [[50, 20], [100, 11], [200, 12]]
    assert set(line(panels[0], "Perceptron").get_ydata()) == {12}
    assert set(line(panels[0], "SPA, best decay").get_ydata()) == {11}
    # mistakes 10 and 12: deviation sqrt(2)
    low, high = panels[0].collections[0].get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((11 - 2**0.5, 20))


def test_the_second_order_is_drawn_beside_the_perceptron_and_lbp(run, tracked):
    records = [run("Perceptron", mistakes=12), run("SOP", mistakes=11), run("CKS", 50, 40)]
    for model, mistakes in {"RBSOP": 13, "LBSOP": 10, "RBP": 15, "LBP": 14}.items():
        records += [run(model, 50, mistakes), run(model, 100, mistakes - 1)]
    first, second = (
        set(figure.axes[0].get_legend_handles_labels()[1])
        for figure in map(tracked(records).plot, ("error_vs_budget", "second_order_vs_budget"))
    )
    assert first == {"RBP", "LBP", "CKS", "Perceptron"}
    assert second == {"RBSOP", "LBSOP", "SOP", "LBP", "Perceptron"}


def test_what_a_chunk_needs_is_marked(run, results):
    for model, supports in (("Perceptron", 77), ("SOP", 66)):
        results.records.append(run(model, shifts=3, supports=supports, targets=["GCAT"]))
    figure = results.plot("error_vs_budget")
    panels = [panel for panel in figure.axes if panel.get_visible()]
    marks = [[text.get_text() for text in panel.texts] for panel in panels]
    assert marks == [[], ["a chunk needs 77"], []]
    assert len({panel.get_ylim() for panel in panels}) == 1  # levels are compared


def test_names_at_the_ends_hide_no_other_and_stay_in_the_figure(results):
    figure = results.plot("error_over_time")
    names = [text for text in figure.axes[0].texts if "\n" in text.get_text()]
    assert len(names) == 5
    boxes = [name.get_window_extent() for name in names]
    for i, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:i])
        assert figure.bbox.contains(*box.min)
        assert figure.bbox.contains(*box.max)


def test_error_over_time_marks_the_shifts_of_the_last_group(results):
    panel = results.plot("error_over_time").axes[0]
    names = [line.get_label() for line in panel.get_lines()]
    assert names[:5] == ["Perceptron", "SPA, decay 0.5", "RBP, budget 100", "LBP, budget 100",
                         "Forgetron, budget 100"]  # fmt: skip
    marks = [line.get_xdata()[0] for line in panel.get_lines()[5:]]
    assert marks == [12.5, 25, 37.5, 50, 62.5, 75, 87.5]
    assert line(panel, "LBP, budget 100").get_ydata() == pytest.approx([11] * 16)


def test_a_model_has_one_colour_in_both_figures(results):
    budget = results.plot("error_vs_budget").axes[0]
    time = results.plot("error_over_time").axes[0]
    colours = {model: line(budget, model).get_color() for model in ("RBP", "LBP", "Forgetron")}
    assert len(set(colours.values())) == 3
    for model, colour in colours.items():
        assert line(time, f"{model}, budget 100").get_color() == colour


def test_a_part_of_the_models_can_be_drawn(run, tracked):
    results = tracked([run("Perceptron", shifts=1)])
    for name in results.figures:
        figure = results.plot(name)
        assert "<svg" in figure._repr_svg_()


@pytest.mark.parametrize("missing", ["matplotlib", "matplotlib.figure"])
def test_without_matplotlib_the_extra_is_named(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "drift.experiments.plots")
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[plots\]"'):
        import drift.experiments.plots  # noqa: F401, PLC0415


def test_names_of_points_hide_no_other_and_no_line_leads_through_one():
    """Two baselines at the top left, and two models of one cost and error."""
    places = {"no change": (0.00063, 48.4), "majority": (0.00075, 44.5), "lr": (0.008, 10.7)}
    places |= {"tree": (0.5, 20.0), "bagging": (0.5, 20.0), "tracker": (0.5, 8.7), "arf": (4, 9.1)}
    spots = [
        {"name": name, "curve": name, "drift": False, "cost": cost, "error": error}
        for name, (cost, error) in places.items()
    ]
    figure = figures.error_against_cost("t", [figures.Panel("memory", spots)] * 2, every=True)
    for panel in figure.axes:
        boxes = {text.get_text(): Text.get_window_extent(text) for text in panel.texts}
        assert boxes.keys() == places.keys()
        for text in panel.texts:
            own = boxes[text.get_text()]
            others = [box for box in boxes.values() if box is not own]
            line = Path([panel.transData.transform(text.xy), (own.min + own.max) / 2])
            assert not own.count_overlaps(others)
            assert not any(line.intersects_bbox(box) for box in others)


@pytest.mark.parametrize("high", [8, 11, 40, 900, 90_000])
def test_logarithmic_axes_have_at_least_three_round_ticks(high):
    figure, [panel] = plots.panels_of(4, 3)
    panel.plot([6.3, high], [6.3, min(high, 60)])
    plots.log_axis(panel.xaxis)
    plots.log_errors(panel)
    figure.draw_without_rendering()
    for axis, most in ((panel.xaxis, high), (panel.yaxis, min(high, 60))):
        low, top = axis.get_view_interval()
        ticks = [tick for tick in axis.get_ticklocs() if low <= tick <= top]
        assert len(ticks) >= 3
        assert top >= most
        assert all(float(f"{tick:.2g}") == tick for tick in ticks)
