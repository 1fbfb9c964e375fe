"""The notebooks run from the first cell to the last, and are committed with what they show."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
#: What is no statement in prose: code, places of links.
ASIDE = re.compile(r"`[^`]*`|\]\([^)]*\)")


@pytest.mark.notebooks
@pytest.mark.filterwarnings("ignore")  # Jupyter's own are not ours to mend
@each
def test_the_notebook_runs(path, tmp_path):
    reason = 'to run notebooks: pip install -e ".[notebooks]"'
    nbclient = pytest.importorskip("nbclient", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    nbformat = pytest.importorskip("nbformat", reason=reason)

    notebook = nbformat.read(shutil.copy(path, tmp_path), as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": tmp_path}},
    )
    client.execute()
    assert any(pictures(cell) for cell in notebook.cells)
    if "DRIFT_DATA" in os.environ:  # two notebooks show other data without it
        assert strays(notebook.cells) == []


@each
def test_the_notebook_is_committed_as_it_ran(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "site-packages" not in text
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    shown = [output for cell in code for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in shown}
    assert not any(output.get("name") == "stderr" for output in shown)


@each
def test_numbers_in_prose_are_in_code_or_outputs(path):
    assert strays(json.loads(path.read_text(encoding="utf-8"))["cells"]) == []


@each
def test_pictures_are_sharp_and_have_an_alternative_text(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not any("image/png" in kinds for kinds in outputs(cell))
        assert bool(pictures(cell)) == (len(cell["metadata"].get("alt", "")) > 40)


def test_a_number_that_nothing_shows_is_found():
    shown = {"output_type": "stream", "text": ["error 4.72% of 6,000, 0.188, 12.345678\n"]}
    code = {"cell_type": "code", "source": ["rows = 2_000; rate = 0.04"], "outputs": [shown]}
    code["metadata"] = {"alt": "The error by rows"}

    def among(prose):
        return strays([{}, code, {"cell_type": "markdown", "source": [prose]}])

    assert among("4.7 % or 5 % of 6,000, 19 %, 18.8 %, 4 % of 2,000, [see](page.md#77) `78`") == []
    assert among("4.8 %, 6 %, 6,001, 18.9 %, 12") == ["4.8", "6", "6,001", "18.9", "12"]


def strays(cells):
    """Return numbers of the prose, but the introduction's, that neither code nor outputs have.

    Alternative texts of pictures are prose, too.

    Prose may round what an output shows by up to two digits, and give shares in percent.
    """
    exact, shown, prose = [], [], []
    for cell in cells[1:]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            prose += NUMBER.findall(ASIDE.sub(" ", text))
        else:
            prose += NUMBER.findall(cell["metadata"].get("alt", ""))
            exact += NUMBER.findall(re.sub(r"(?<=\d)_(?=\d)", "", text))
            shown += NUMBER.findall("".join(map(printed, cell["outputs"])))
    return [
        number
        for number in prose
        if not any(value(one) * unit == value(number) for one in exact for unit in (1, 100))
        and not any(rounds(one, number) for one in shown)
    ]


def rounds(shown, number):
    """Whether a number is another that is shown, or that share in percent, rounded."""
    digits = decimals(number)
    return any(
        digits <= decimals(shown) - shift <= digits + 2
        and abs(value(shown) * 10**shift - value(number)) <= 0.5 * 10**-digits + 1e-9
        for shift in (0, 2)
    )


def decimals(number):
    return len(number.partition(".")[2])


def value(number):
    return float(number.replace(",", ""))


def printed(output):
    data = output.get("data", {})
    return "".join(data.get("text/plain", output.get("text", "")))


def outputs(cell):
    return [output.get("data", {}) for output in cell.get("outputs", [])]


def pictures(cell):
    return [kinds for kinds in outputs(cell) if "image/svg+xml" in kinds]
