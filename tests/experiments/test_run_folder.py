"""A folder of runs: what is kept, found again, refused and left whole."""

import csv
from pathlib import Path

import pytest

from drift.errors import DataError, ParameterError
from drift.experiments import RunFolder


def test_what_is_appended_is_read_by_key_and_the_last_of_a_key_counts(tmp_path):
    folder = RunFolder(tmp_path / "results" / "deep")
    assert folder.read() == {}
    for record in [{"key": "a", "n": 1}, {"key": "b", "n": 2}, {"key": "a", "n": 3}]:
        folder.append(record)
    assert RunFolder(folder.path).read() == {"a": {"key": "a", "n": 3}, "b": {"key": "b", "n": 2}}


@pytest.mark.parametrize("torn", ['{"key": "b", "mist', '{"key": "b"}', "{"])
def test_a_torn_last_line_is_dropped_loudly_and_cut_off(tmp_path, torn):
    folder = RunFolder(tmp_path)
    folder.append({"key": "a"})
    with folder.runs.open("a") as file:
        file.write(torn)
    assert folder.read() == {"a": {"key": "a"}}
    with pytest.warns(RuntimeWarning, match=r"runs\.jsonl: dropped the last line"):
        folder.append({"key": "b"})
    assert list(folder.read()) == ["a", "b"]


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path):
    folder = RunFolder(tmp_path)
    folder.runs.write_text('{"key"')
    assert folder.read() == {}
    with pytest.warns(RuntimeWarning, match="cut short"), folder.alone():
        assert folder.runs.read_bytes() == b""


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"mistakes": 3}', "7"])
def test_another_bad_line_is_named(tmp_path, line):
    folder = RunFolder(tmp_path)
    folder.append({"key": "a"})
    with folder.runs.open("a") as file:
        file.write(f"{line}\n")
    folder.append({"key": "b"})
    with pytest.raises(DataError, match=r"runs\.jsonl, line 2: not a run: delete the line"):
        folder.read()


@pytest.mark.parametrize(
    ("written", "changed"),
    [('"mistakes": 7', '"mistakes": null'), ('"mistakes": 7, ', ""), ('"key": "b"', '"key": "a"')],
)
def test_a_line_that_is_not_as_it_was_written_is_named(tmp_path, written, changed):
    folder = RunFolder(tmp_path)
    for key in "ab":
        folder.append({"seed": 1, "key": key, "mistakes": 7, "supports": 3})
    first, second = folder.runs.read_text().splitlines()
    folder.runs.write_text(f"{first}\n{second.replace(written, changed)}\n")
    with pytest.raises(DataError, match=r"runs\.jsonl, line 2: not as it was written: delete"):
        folder.read()


def test_one_writes_at_a_time_and_others_may_read(tmp_path):
    mine, other = RunFolder(tmp_path), RunFolder(tmp_path)
    with mine.alone():
        mine.append({"key": "a"})
        assert list(other.read()) == ["a"]
        with pytest.raises(ParameterError, match="another call is writing there: wait for its end"):
            other.append({"key": "b"})
    other.append({"key": "b"})
    assert list(mine.read()) == ["a", "b"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "full.csv").symlink_to("/dev/full")
    full = r"full\.csv: No space left on device; .* the same call computes only what is missing"
    with pytest.raises(ParameterError, match=full):
        folder.write_table("full", [{"x": 1}])
    with pytest.raises(ParameterError, match=full):
        folder.write_text("full.csv", "x")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="give a folder that can be made"):
        RunFolder(tmp_path / "file" / "results")


def test_tables_and_manifest_replace_what_was_there(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_table("table", [{"x": 1}, {"x": 2}, {"x": 3}])
    folder.write_table("table", [{"model": "LBP", "error": 1.5}])
    with (tmp_path / "table.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"model": "LBP", "error": "1.5"}]
    folder.write_table("table", [])
    assert (tmp_path / "table.csv").read_text() == ""
    folder.write_table("table", [], ["model", "error"])
    assert (tmp_path / "table.csv").read_text() == "model,error\n"
    folder.write_manifest({}, {"budget": 3}, 2.0)
    folder.write_manifest({"stories": {"sha256": "1f"}}, {"budget": 7}, 2.0)
    about = folder.manifest()
    assert (about["data"], about["parameters"]) == ({"stories": {"sha256": "1f"}}, {"budget": 7})
