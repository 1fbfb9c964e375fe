"""The notebooks run from the first cell to the last, and are committed with what they show."""

import json
import shutil
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


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
    shown = [list(output.get("data", {})) for cell in notebook.cells for output in outputs(cell)]
    assert sum("image/png" in kinds for kinds in shown) >= 1


@each
def test_the_notebook_is_committed_as_it_ran(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "site-packages" not in text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in outputs(cell)}
    assert "error" not in kinds
    assert not any(output.get("name") == "stderr" for cell in cells for output in outputs(cell))


def outputs(cell):
    return cell.get("outputs", [])
