"""What the pages say is true: their Python runs, their links lead to files, their options exist."""

import ast
import io
import itertools
import json
import logging
import re
import tomllib
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import drift
from drift import testing
from drift.cli import app
from drift.engines import step
from drift.errors import MessageError
from drift.experiments.arena.streams import STREAMS
from drift.models import MODELS, Tracker
from tests.engines import program

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for folder in (".", "docs", "docs/reproduction", "datasets", "benchmarks", "notebooks")
    for path in (ROOT / folder).glob("*.md")
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(text, language):
    """Code blocks with the number of lines above each."""
    for match in FENCE.finditer(text):
        if match[1] == language:
            yield text[: match.start(2)].count("\n"), match[2]


#: Of the program that takes as long as all others; the fast suite has it learn fewer numbers.
DECODER = "def best_two"


def python_blocks():
    for page in PAGES:
        for above, code in blocks(page.read_text(encoding="utf-8"), "python"):
            name = page.relative_to(ROOT).as_posix()
            marks = [] if name == "README.md" else [pytest.mark.compiled]
            if DECODER in code:
                marks.append(pytest.mark.slow)
            yield pytest.param(page, above, code, id=f"{name}:{above + 1}", marks=marks)


def run(page, above, code):
    """Run a block with the line numbers of its page; return what it defines."""
    names = {"__name__": "__main__"}
    exec(compile("\n" * above + code, str(page), "exec"), names)  # noqa: S102 - ours
    return names


@pytest.mark.parametrize(("page", "above", "code"), list(python_blocks()))
def test_python_runs_and_prints_what_its_comments_say(page, above, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with redirect_stdout(printed):
        run(page, above, code)
    output = re.findall(r"^(?:print\(.*\)  )?# (.*)$", code, re.MULTILINE)
    assert printed.getvalue().splitlines() == output


@pytest.mark.sources
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    links = [link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [link for link in links if link and not re.match(r"\w+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_pages_on_experiments_name_all_options_of_a_comparison_and_no_others():
    pages = [ROOT / "docs" / name for name in ("experiments.md", "reading.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    options = {
        command: {option for one in app.get_command(None, command).params for option in one.opts}
        for command in ("arena", "compare", "reproduce", "track")
    }
    assert named <= set().union(*options.values()) | {"--help"}
    assert {option for option in options["compare"] if option.startswith("--")} <= named


def test_the_page_on_metrics_is_what_its_program_writes():
    for needed in ("prometheus_client", "starlette", "yaml"):
        pytest.importorskip(needed)
    from tools import metrics  # noqa: PLC0415 - needs an extra

    assert metrics.PAGE.read_text(encoding="utf-8") == metrics.page()


def test_the_page_on_options_is_what_its_program_writes():
    pytest.importorskip("kafka")
    from tools import options  # noqa: PLC0415 - needs an extra

    assert options.PAGE.read_text(encoding="utf-8") == options.page()


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"spam", b"spam,x", b",1.5,2"])
def test_the_codec_of_the_page_on_python_learns_no_message_without_label_or_numbers(value):
    page = ROOT / "docs" / "kafka_python.md"
    [(above, code)] = blocks(page.read_text(encoding="utf-8"), "python")
    try:
        example = run(page, above, code)["Csv"]().decode(value)
    except MessageError:
        assert value != b",1.5,2"
    else:
        assert (value, example.label) == (b",1.5,2", None)


def test_the_page_on_models_names_the_models_that_there_are():
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    [table] = re.findall(r"^\| model \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == {"Tracker", *MODELS}


#: Where the oldest Python of `requires-python` stands, too; {1} is its minor number.
OLDEST = {
    ".github/workflows/ci.yml": ['tests-3.{1}, python: "3.{1}"'],
    "CONTRIBUTING.md": ["CPython 3.{1} and later"],
    "README.md": ["Python 3.{1} or later"],
    "docs/compatibility.md": ["| Python | 3.{1} or later |"],
    "drift/__init__.py": ["(3, {1})", "needs Python 3.{1} or later"],
    "pyproject.toml": [':: Python :: 3.{1}"', 'build = ["cp3{1}-', 'target-version = "py3{1}"'],
    "setup.py": ["(3, {1})", "needs Python 3.{1} or later", '"cp3{1}"', '"0x03{1:02X}0000"'],
}


@pytest.mark.sources
@pytest.mark.parametrize("file", OLDEST)
def test_the_oldest_python_is_the_same_everywhere(file):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = tuple(map(int, re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"]).groups()))
    if not (ROOT / file).exists():  # a source distribution has no workflows
        pytest.skip(f"no {file}")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert [part for part in OLDEST[file] if part.format(*oldest) not in text] == []


def test_commands_install_extras_that_there_are():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    wanted = re.findall(r"""install [^"'`\n]*["']([\w.-]*)\[([\w,]+)\]["']""", pages)
    extras = {extra for _, some in wanted for extra in some.split(",")}
    assert {"compare", "demo", "test", "dev"} <= extras <= set(project["optional-dependencies"])
    # From a clone: on the public index another distribution has the name.
    assert {source for source, _ in wanted} == {"."}
    assert re.findall(r"git clone (\S+)", pages) == [project["urls"]["Repository"]]


@pytest.mark.sources
def test_no_file_installs_the_strangers_distribution():
    """Before extras pip takes the package's name for another distribution, not for ours."""
    folders = ("benchmarks", "datasets", "deploy", "docs", "drift", "notebooks", "tests", "tools")
    files = [*ROOT.iterdir(), *(path for name in folders for path in (ROOT / name).rglob("*"))]
    written = {"", ".cff", ".ipynb", ".md", ".py", ".pyi", ".service", ".toml", ".yaml", ".yml"}
    files = [path for path in files if path.suffix in written and path.is_file()]
    texts = {path: path.read_text("utf-8") for path in files if path.name != ".git"}
    assert len(texts) > 400
    assert [path for path, text in texts.items() if re.search(r"\bdrift\[[a-z]", text)] == []


@pytest.mark.parametrize("engine", ["quix", "spark"])
def test_the_page_on_engines_has_a_program_for_each(engine):
    code = program(engine, "broker:1", "LBP(budget=2)")
    compile(code, engine, "exec")
    assert "broker:1" in code
    assert "import LBP" in code


@pytest.mark.parametrize("engine", ["quix", "spark"])
@pytest.mark.parametrize(
    "value", [None, b"", b"no json", b"\xff", b"7", b"[]", b"{}", b'{"id": 1}', b"[" * 200_000]
)
def test_the_programs_of_engines_leave_out_what_they_cannot_read(engine, value, caplog):
    tree = ast.parse(program(engine, "broker:1", "LBP(budget=2)"))
    tree.body = [one for one in tree.body if getattr(one, "name", "") == "read"]
    place = {"topic": "payments", "partition": 3, "offset": 2}
    names = {"json": json, "logging": logging, "message_context": lambda: SimpleNamespace(**place)}
    exec(compile(tree, engine, "exec"), names)  # noqa: S102 - the page's
    more = (3, 2) if engine == "spark" else ()
    assert not names["read"](*more, value)
    assert "payments:3:2 is left out: " in caplog.text
    good = names["read"](*more, b'{"id": 1, "features": {"sum": 2}, "label": true}')
    payment = (1, ({"sum": 2}, True))
    assert good == (payment if engine == "spark" else [payment])


def test_the_page_on_engines_sends_what_its_programs_predict():
    pytest.importorskip("kafka")
    pytest.importorskip("confluent_kafka")
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    [(above, code)] = [one for one in blocks(page, "py") if "KafkaProducer" in one[1]]
    [(_, shown)] = blocks(page, "text")
    with testing.MockKafka() as broker:
        broker.create_topic("payments", 8)
        own = code.replace('bootstrap_servers=os.environ["BROKER"]', f"**{broker.client_args!r}")
        run("engines.md", above, own)["producer"].close()
        records = testing.consume(broker, "payments", 2)
    assert {record.key for record in records} == {b"c7"}
    payments = [json.loads(record.value) for record in records]
    examples = [(payment["features"], payment.get("label")) for payment in payments]
    _, predictions = step(None, examples, Tracker(budget=50))
    pairs = zip(payments, predictions, strict=True)
    answers = [json.dumps({"id": payment["id"], "predicted": y}) for payment, y in pairs]
    assert answers == shown.splitlines()


def cells(name, part=""):
    """The cells of a page's tables, by row and column; `part`: of sections of this heading."""
    text = (ROOT / name).read_text("utf-8")
    if part:
        text = "".join(re.findall(rf"^##+ {part}\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [
            [cell.strip("* `") for cell in line.split("|")[1:-1]] for line in table.split("\n")
        ]
        for row in lines[2:-1]:
            yield from (
                ((row[0], column), cell) for column, cell in zip(lines[0], row, strict=True)
            )


def arena_errors(delay):
    """Errors in percent by stream and model, of models that ended with their defaults."""
    pytest.importorskip("pyarrow")
    runs = pytest.importorskip("pandas").read_parquet(ROOT / "docs" / "arena-runs.parquet")
    runs = runs[(runs["status"] == "ok") & ~runs["model"].str.contains(" @ ")]
    assert not runs["unpredicted"].any()  # else an error is of fewer rows than another
    runs = runs[runs["delay"].isna() if delay is None else runs["delay"] == delay]
    column = "error" if delay is None else "error_after_delay"
    errors = 100 * runs.groupby(["stream", "model"])[column].mean().dropna()
    return {stream: part.droplevel(0).to_dict() for stream, part in errors.groupby(level=0)}


def rows_of(name, part):
    """The rows of a page's tables as dicts, by their first cell."""
    rows = {}
    for (row, column), cell in cells(name, part):
        rows.setdefault(row, {})[column] = cell
    return rows


def test_the_readme_has_the_errors_of_the_arena():
    errors = {"at once": arena_errors(None), "1,000 rows late": arena_errors("1000")}
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(
        r"^\| \*\*(ahead|behind)\*\*: .*\| `(.+)`.*? \| (.+) \|$", text, re.MULTILINE
    )
    assert Counter(case for case, *_ in found) == {"ahead": 3, "behind": 4}
    for case, stream, cells in found:
        labels, own, best, name = cells.split(" | ")
        own, best = float(own.strip("*")), float(best.strip("*"))
        others = {n: e for n, e in errors[labels][stream].items() if not n.startswith("Tracker")}
        assert others[name] == min(others.values())
        assert own == pytest.approx(errors[labels][stream]["Tracker"], abs=0.05 + 1e-9)
        assert best == pytest.approx(others[name], abs=0.05 + 1e-9)
        assert (own < best) == (case == "ahead")


def test_the_readme_names_all_great_losses():
    """Its sentence on the others: by less than 2 points, or of one mistake in 64."""
    named = {"rialto", "spheres", "moving rbf", "stocks", "flares"}
    for delay in (None, "100", "1000"):
        for stream, errors in arena_errors(delay).items():
            best = min(error for name, error in errors.items() if not name.startswith("Tracker"))
            assert errors["Tracker"] - best < 2 or stream in named


#: Names in the arena of the models in tables of the page on which model.
SHOWN = {name: name for name in ("PassiveAggressive", "LBP", "logistic regression")} | {
    "Tracker()": "Tracker",
    "Hoeffding adaptive tree": "Hoeffding adaptive tree",
    "ARFClassifier": "ARF",
    "the majority": "majority",
}
OF_TEXT = {
    "LBP": "LBP",
    "logistic": "logistic regression",
    "at 10": "logistic regression at rate 10 with ADWIN",
}


def test_the_page_on_which_model_has_the_errors_and_costs_of_the_arena():
    errors = arena_errors(None)
    runs = pytest.importorskip("pandas").read_parquet(ROOT / "docs" / "arena-runs.parquet")
    runs = runs[(runs["status"] == "ok") & runs["delay"].isna()].groupby(["model", "stream"])
    heldout = [name for name, entry in STREAMS.items() if entry.heldout]
    rows = rows_of("docs/which_model.md", "How much worse the others are")
    assert rows.keys() > SHOWN.keys()
    for shown, name in SHOWN.items():
        row = {column: cell.rstrip(" †") for column, cell in rows[shown].items() if cell}
        own = {stream: errors[stream][name] for stream in heldout if name in errors[stream]}
        assert float(row.pop("mean")) == pytest.approx(np.mean([*own.values()]), abs=0.05 + 1e-9)
        for cost, column in (("time", "microseconds"), ("memory", "memory")):
            values = runs[column].mean()
            ratio = np.exp(np.log(values[name] / values["Tracker"])[list(own)].mean())
            assert float(row.pop(cost, ratio)) == pytest.approx(ratio, rel=0.05)
        del row["model"]
        streams = {column: float(cell) for column, cell in row.items()}
        expected = {stream: own[stream] for stream in streams if stream in own}
        assert len(streams) >= 5
        assert streams == pytest.approx(expected, abs=0.05 + 1e-9)


@pytest.mark.parametrize(
    ("delay", "part", "own"),
    [
        (None, "Labels at once", "Tracker()"),
        ("1000", "Labels 1,000 rows late", "Tracker(late=True)"),
    ],
)
def test_the_page_on_which_model_has_the_errors_of_texts(delay, part, own):
    errors = arena_errors(delay)
    rows = rows_of("docs/which_model.md", part)
    assert rows.keys() == {name for name, entry in STREAMS.items() if entry.sparse}
    for stream, row in rows.items():
        columns = {own: "Tracker", "Tracker(late=False)": "Tracker late=False", **OF_TEXT}
        cells = {name: row[column] for column, name in columns.items() if column in row}
        shown = {name: float(cell) for name, cell in cells.items() if cell}
        expected = {name: errors[stream][name] for name in cells if name in errors[stream]}
        assert shown == pytest.approx(expected, abs=0.05 + 1e-9)


@pytest.mark.parametrize(
    ("delay", "labels"), [(None, "at once"), ("100", "100 rows late"), ("1000", "1,000 rows late")]
)
def test_the_arena_has_the_errors_of_its_runs_and_no_others(delay, labels):
    errors = arena_errors(delay)
    rows = rows_of("docs/arena-errors.md", rf"[\w -]+ streams, labels {labels}")
    assert rows.keys() == errors.keys()
    columns = {"logistic": "logistic regression", "boosting": "retrained boosting"}
    columns["late=False"] = "Tracker late=False"
    for stream, row in rows.items():
        others = {n: e for n, e in errors[stream].items() if not n.startswith("Tracker")}
        known = {columns.get(column, column): cell for column, cell in row.items()}
        best = known.pop("its name")
        assert others[best] == min(others.values())
        assert float(known.pop("best other")) == pytest.approx(others[best], abs=0.005 + 1e-9)
        assert int(known.pop("of")) == len(others)
        del known["stream"], known["rows"]
        shown = {name: float(cell) for name, cell in known.items() if cell[0].isdigit()}
        expected = {name: errors[stream][name] for name in known if name in errors[stream]}
        assert shown == pytest.approx(expected, abs=0.005 + 1e-9)


def test_figures_can_be_read_on_a_dark_page():
    from tools.dark import turned  # noqa: PLC0415

    for colour in ("#000000", "#0072B2", "#d55e00", "#7f7f7f", "#333"):
        assert luminance(turned(colour)) > 0.15  # at least 3 : 1 on what white becomes
    assert luminance(turned("#ffffff")) < 0.02


def luminance(colour):
    """Relative luminance, of WCAG 2."""
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_citation_is_of_this_version_and_names_the_models_of_each_paper():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {drift.__version__}\n" in citation
    named = re.findall(r"^    notes: (.*)", citation, re.MULTILINE)
    own = {"StructuredProjectron"}  # a model, though no line of the table
    assert set(re.findall(r"\b[A-Z]\w+", " ".join(named))) - own == {*MODELS} - {"Perceptron"}


def test_the_decoder_of_the_page_on_structured_outputs_is_exact():
    page = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")
    [(above, code)] = [one for one in blocks(page, "python") if DECODER in one[1]]
    best_two = run("structured.md", above, code.partition("\nimages, ")[0])["best_two"]
    rng = np.random.default_rng(0)
    for length in (2, 3, 4):
        nodes, edges = rng.normal(size=(length, 10)), rng.normal(size=(10, 10))

        def potential(y, nodes=nodes, edges=edges):
            return nodes[range(len(y)), y].sum() + edges[y[:-1], y[1:]].sum()

        every = sorted(itertools.product(range(10), repeat=length), key=potential)
        assert best_two(nodes.tolist(), edges.tolist()) == [every[-1], every[-2]]


def test_the_program_of_the_page_on_structured_outputs_learns(capsys):
    page = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")
    [(above, code)] = [one for one in blocks(page, "python") if DECODER in one[1]]
    few = code.replace("(600,", "(60,").replace("(200,", "(20,").replace("[99::100]", "[9::10]")
    names = run("structured.md", above, few)
    errors = [line.partition("%")[0] for line in capsys.readouterr().out.splitlines()[:2]]
    read, single = map(float, errors)
    assert read < single < 60.0
    assert names["supports"] == sorted(names["supports"])
