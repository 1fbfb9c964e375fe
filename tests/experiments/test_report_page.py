"""`report.html` of a comparison: what it says, and what it does in a browser without a network."""

import csv
import re
import shutil
import sys
import warnings

import pytest
from matplotlib.text import Text
from rich.console import Console
from river.base import Classifier
from river.dummy import NoChangeClassifier, PriorClassifier
from river.forest import ARFClassifier
from river.preprocessing import StandardScaler

from drift.experiments import COMPARISON, Contender, Results, compare
from drift.experiments.comparison.report import report
from drift.experiments.comparison.tables import recovery_rows
from drift.streams import Stream

pytest.importorskip("plotly")

NUMBER = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


class Always(Classifier):
    def __init__(self, label=True):  # noqa: FBT002
        self.label = label

    def learn_one(self, x, y):
        pass

    def predict_one(self, x):
        return self.label


class Broken(Always):
    def learn_one(self, x, y):
        raise ValueError("<b>no</b>")


# A hundred rows are true, and the next hundred are not.
STREAM = Stream.of([({"a": 1.0}, number < 100) for number in range(200)])


@pytest.fixture(scope="module")
def results(tmp_path_factory, without_rendering):
    models = {"yes": Always(True), "<no>": Always(False), "broken": Broken()}
    folder = tmp_path_factory.mktemp("compared")
    with without_rendering():
        return compare(models, STREAM, drifts=[(100, 20)], windows=4, jobs=1, output=folder)


@pytest.fixture(scope="module")
def text(results):
    return (results.folder / "report.html").read_text(encoding="utf-8")


def test_the_page_is_one_file_that_names_no_other(text):
    page = text.partition('<script type="application/json"')[0]
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page) == []
    assert "default-src 'none'" in page
    # A failed model's message is escaped as text.
    assert "broken on stream: failed (ValueError: " in page
    assert "<dt>forks</dt>" not in page  # there is one model of each kind
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "<no>" not in page
    assert "<no>" not in text.partition('type="application/json"')[2].partition("</script>")[0]


def test_the_page_says_what_the_records_say(text):
    # No change is the best of all, and of what learns yes and no are.
    lead = "no change, which repeats the last label, has the lowest error, 0.50 %;"
    second, third = "&lt;no&gt; has 49.75 %", "yes has 50.25 %"
    assert f"On stream (200 rows) {lead} {second}; {third}." in text
    assert "<dt>features of stream</dt><dd>a</dd>" in text
    assert "<dt>yes</dt><dd>Always ( label=True )</dd>" in text
    rows = re.findall(r'<tr[^>]*><th scope="row" data-value="([^"]*)">.*?</tr>', text)
    # Of the 199 rows after the first, 99 are true: no change is wrong once, no on 99, yes on 100.
    assert rows[:2] == ["no change", "&lt;no&gt;"]


def test_with_late_labels_the_page_cites_the_error_after_the_first_label():
    # Rows 1 to 10 come before a label. Of the other 189 no change is wrong on 11, yes on 100.
    text = report(compare({"yes": Always(True)}, STREAM, delay=11, windows=4, jobs=1))
    lead = "no change, which repeats the last label, has the lowest error after the first label, "
    assert f"On stream (200 rows) {lead}5.82 %; yes has 52.91 %." in text
    [row] = re.findall(r'<th scope="row" data-value="no change">no change</th>(.*)</tr>', text)[:1]
    assert re.findall(r">([\d.]+)</td>", row)[:2] == ["10.55", "5.82"]


def test_a_model_may_have_the_name_of_a_setting():
    text = report(compare({"windows": Always(True)}, STREAM, windows=4, jobs=1))
    assert "<dt>windows</dt><dd>4</dd>" in text
    assert "<h3>Models</h3><dl><dt>windows</dt><dd>Always ( label=True )</dd></dl>" in text


def test_models_are_described_with_their_parameters():
    steps = "StandardScaler ( with_std=True window_size=None ), Always ( label=False )"
    assert (
        Contender(StandardScaler() | Always(False)).traits().description == f"Pipeline ( {steps} )"
    )
    assert (
        Contender(ARFClassifier(n_models=3))
        .traits()
        .description.startswith("ARFClassifier ( n_models=3 ")
    )


def test_tables_are_of_means_over_folds():
    models = {"last": NoChangeClassifier(), "most": PriorClassifier()}
    results = compare(models, STREAM, drifts=[100, 150], folds=3, windows=4, jobs=1)
    text = report(results)
    # No row is predicted before the first label.
    assert "no model predicts" not in text
    assert "<dt>folds</dt><dd>3</dd><dt>forks</dt><dd>cross</dd>" in text
    after = text.partition("After each drift")[2].partition("</table>")[0]
    rows = re.findall(r'<tr><th scope="row" data-value="(.*?)">.*?<td.*?data-value="(.*?)"', after)
    assert sorted(rows) == [("last", "100"), ("last", "150"), ("most", "100"), ("most", "150")]
    actual = [r["excess"] for r in recovery_rows(results.records) if r["row"] == 100]
    last = re.search(r'"last">.*?data-value="([^"]*)">[^<]*</td></tr>', after).group(1)
    assert float(last) == pytest.approx(sum(actual[:3]) / 3)


def test_results_that_are_read_have_the_same_page(results):
    before, after = (
        re.sub(r"in [\d,]+ s", "", report(one))
        for one in (results, Results.read(results.folder, COMPARISON))
    )
    assert before == after


@pytest.mark.usefixtures("undrawn")
def test_without_plotly_there_is_no_report_and_a_warning_says_so(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.warns(RuntimeWarning, match="no report: plotly is not installed"):
        results.save(tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "table.csv").exists()


# --- in a browser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        result = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield result
        result.close()


@pytest.fixture
def opened(browser, results):
    """Open the page; return it with its errors and requests."""
    contexts = []

    def visit(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        output, asked = [], []
        page.on("console", lambda message: output.append(message.text))
        page.on("pageerror", lambda error: output.append(str(error)))
        page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
        page.goto((results.folder / "report.html").as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        return page, output, asked

    yield visit
    for context in contexts:
        context.close()


def column(page, number=0):
    cells = page.locator("table").first.locator(f"tbody tr > :nth-child({number + 1})")
    return cells.all_inner_texts()


def span(page, axis="xaxis"):
    return page.evaluate(f"document.querySelector('.over-time')._fullLayout.{axis}.range")


@pytest.mark.browser
def test_tables_sort_and_curves_zoom_by_mouse_and_by_keys_without_a_network(opened):
    page, output, asked = opened(viewport={"width": 1200, "height": 900})
    heading = page.locator("table").first.locator("thead button").first
    heading.click()
    names = sorted(["yes", "<no>", "broken", "no change", "majority"], key=lambda n: n.strip("<>"))
    assert sorted(column(page)) == sorted(names)
    up = column(page)
    assert [n for n in up if n != "<no>"] == ["broken", "majority", "no change", "yes"]
    heading.focus()
    page.keyboard.press("Enter")
    assert column(page) == up[::-1]
    page.locator("table").first.locator("thead button").nth(1).press("Space")
    # By error, ascending; what has none is last in either direction.
    assert column(page)[0] == "no change"
    assert column(page, 1)[-1] == ""
    page.locator("table").first.locator("thead button").nth(1).press("Space")
    assert (column(page)[0] in {"majority", "yes"}, column(page, 1)[-1]) == (True, "")  # a tie

    assert span(page) == [0, 200]
    first = page.locator("figure").first
    first.get_by_role("button", name="Zoom in").press("Enter")
    assert span(page) == pytest.approx([40, 160])
    first.get_by_role("button", name="Right").press("Enter")
    assert span(page) == pytest.approx([76, 196])
    first.get_by_role("button", name="Reset").click()
    assert span(page) == [0, 200]
    box = first.locator(".nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    page.mouse.up()
    page.wait_for_function("document.querySelector('.over-time')._fullLayout.xaxis.range[1] < 120")
    assert span(page) == pytest.approx([50, 100], abs=5)

    first.locator("select").select_option("log_loss")
    page.wait_for_function(
        "document.querySelector('.over-time')._fullLayout.yaxis.title.text.startsWith('log loss')"
    )
    assert first.locator(".annotation", has_text="drift").count() == 1
    for plot in page.locator(".plot").all():
        assert plot.get_attribute("role") == "img"
        assert len(plot.get_attribute("aria-label")) > 60
    assert (output, set(asked)) == ([], {"file"})


@pytest.mark.browser
def test_a_telephone_scrolls_tables_and_not_the_page(opened):
    page, output, _ = opened(viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = page.locator(".wide").first
    assert wide.evaluate("e => e.scrollWidth > e.clientWidth && e.tabIndex === 0")
    assert output == []


NASTY = (
    "<img src=x onerror=document.title='run'>",
    '<a href="https://example.org">link</a>',
    "%{y}<extra>$x_$ &lt;",
    "=1+1",
    "[/red]",
    "\x1b[2Jgone",
    "$\\frac$",
)


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Results whose names, labels and features are what programs might run."""
    labels = NASTY[:2]
    rows = [(dict.fromkeys(NASTY, 1.0), labels[i % 20 == 0]) for i in range(200)]
    models = {name: Always(labels[0]) for name in NASTY}
    folder = tmp_path_factory.mktemp("strangers")
    stream = Stream(rows, NASTY[0], drifts=[100])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph 27")  # fonts have no escape
        return compare(models, stream, windows=4, folds=2, predictions=True, jobs=1, output=folder)


@pytest.mark.filterwarnings("ignore:Glyph 27")
def test_names_and_labels_of_strangers_are_texts_everywhere(strangers):
    console = Console(width=200)
    with console.capture() as shown:
        console.print(strangers)
    assert "\x1b[2J" not in shown.get()
    assert "[/red]" in shown.get()
    page = (strangers.folder / "report.html").read_text("utf-8")
    for text in (page.partition('type="application/json"')[0], page.partition("<body>")[2]):
        assert "<img" not in text.partition("<script")[0]
    for path in [*strangers.folder.glob("*.csv"), *strangers.folder.glob("predictions/*.csv")]:
        with path.open(newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [c for c in cells if c[:1] in {"=", "@", "\t"}], path
        assert not [c for c in cells if c[:1] in {"+", "-"} and not NUMBER.fullmatch(c)], path
    read = Results.read(strangers.folder, COMPARISON)
    assert read.records == strangers.records
    names = [text.get_text() for text in strangers.plot("ranks").findobj(Text)]
    assert any(NASTY[-1] in name for name in names)


@pytest.mark.browser
def test_no_markup_of_names_runs_in_the_browser(browser, strangers):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
    page.goto((strangers.folder / "report.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
    assert page.locator("img, a[href^=http], .plot a").count() == 0
    assert page.title().startswith(NASTY[0])
    page.locator(".plot").first.hover()
    assert set(asked) == {"file"}
    assert any("<a href=" in text for text in page.locator(".plot text").all_text_contents())
    page.close()


@pytest.mark.browser
def test_the_dark_is_dark_and_paper_is_white(opened):
    page, output, _ = opened(color_scheme="dark")
    shade = "e => getComputedStyle(e).backgroundColor"
    body, paper = page.locator("body"), page.locator(".over-time rect.bg, .main-svg").first
    assert body.evaluate(shade) == "rgb(20, 23, 28)"
    assert "20, 23, 28" in paper.evaluate("e => getComputedStyle(e).background")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert body.evaluate(shade) == "rgb(255, 255, 255)"
    assert not page.locator(".tools").first.is_visible()
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 between its margins
    assert page.locator("table").first.bounding_box()["width"] <= 718
    page.wait_for_function(
        "document.querySelector('.over-time')._fullLayout.paper_bgcolor === '#ffffff'"
    )
    assert output == []
