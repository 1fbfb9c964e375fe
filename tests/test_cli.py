import errno
import io
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from drift import __version__, cli
from drift._options import declared
from drift.cli import app
from drift.cli._command import Command, ask, say
from drift.cli._experiment import Experiment
from drift.cli._figure import ErrorFigure, drawn
from drift.cli._signals import leave_at_signals
from drift.cli.arena import Arena
from drift.cli.compare import Compare
from drift.cli.produce import paced, pick
from drift.cli.reproduce import Reproduce
from drift.cli.serve import Serve
from drift.cli.track import Track
from drift.consumers.records import Message, Position
from drift.experiments import RunFolder, compare, reproduce, run_all, track
from drift.experiments.arena import arena
from drift.experiments.comparison.protocol import FORKS
from drift.models import MODELS

QUICK = [
    "track",
    "--rows",
    "160",
    "--models",
    "lbp,Perceptron",
    "--budgets",
    "10,20",
    "--jobs",
    "1",
]


@pytest.fixture
def drift(monkeypatch, tmp_path):
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_version(drift):
    shown = drift("--version")
    assert (shown.exit_code, shown.stdout) == (0, f"drift {__version__}\n")


def test_help_names_the_command(drift):
    assert "track" in drift("--help").stdout


def test_drift_alone_shows_three_examples(drift):
    shown = drift()
    examples = [line for line in shown.stdout.splitlines() if line.startswith("  drift ")]
    assert (shown.exit_code, len(examples)) == (0, 3)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert {line.split()[1] for line in examples} <= set(app.list_commands(None))


def pages():
    """Every command and group, as words after ``drift``."""
    yield ()
    for name in app.list_commands(None):
        yield (name,)
        yield from ((name, one) for one in getattr(app.get_command(None, name), "commands", ()))


@pytest.mark.parametrize("words", list(pages()), ids=" ".join)
def test_help_fits_80_columns_and_cuts_nothing(words):
    shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80)
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert not re.search(r"\.\.\.(?!\s|\]|$)|\w\.\.\.|…", shown.stdout)
    command = app
    for word in words:
        command = command.get_command(None, word)
    output = re.sub(r"-\s+", "-", " ".join(shown.stdout.split()))
    for one in (one for one in command.params if not getattr(one, "hidden", False)):
        for name in [*one.opts, *one.secondary_opts]:
            assert one.param_type_name == "argument" or name in shown.stdout.split()
        assert " ".join((getattr(one, "help", None) or "").split()) in output
    for name in getattr(command, "commands", command is app and app.list_commands(None)) or ():
        about = command.get_command(None, name).get_short_help_str(limit=10**6)
        assert f" {name} {about} " in f"{output} "


def test_a_new_command_is_one_file(drift, tmp_path, monkeypatch):
    page = Path(__file__).parents[1] / "CONTRIBUTING.md"
    section = page.read_text(encoding="utf-8").partition("## Add a command")[2]
    (tmp_path / "count.py").write_text(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1])
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    assert "  count " in drift("--help").stdout
    assert "Stop at so many. [default: 1000; at least 1]" in " ".join(
        drift("count", "--help").stdout.split()
    )
    assert drift("count", "a.svm").stdout == "2\n"
    assert drift("count", "a.svm", "--rows", "1").stdout == "1\n"
    assert drift("count", "a.svm", "--rows", "0").stderr == (
        "error: --rows must be at least 1, not 0\n"
    )
    monkeypatch.delitem(sys.modules, "drift.cli.count")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trak"], "no command 'trak': did you mean 'track'?"),
        (["track", "--buget", "3"], "--budgets"),
        (["track", "--rows", "x"], "--rows takes a whole number, not 'x'"),
        (["track", "--backend", "dusk"], "--backend cannot be 'dusk': did you mean 'dask'?"),
        (["produce", "newswire"], "Missing option '--topic'"),
        (["consume", "t", "--kep", "3"], "--keep"),
        (["checkpoint", "shw"], "'shw'"),
        (["produce", "newswire", "--topic", "t", "--rate", "0"], "--rate must be above 0, not 0"),
        (["track", "--kernel", "Linar"], "no model or kernel 'Linar': did you mean 'Linear'?"),
    ],
)
def test_what_there_is_not_is_refused_before_anything_runs(drift, arguments, message):
    shown = drift(*arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr


def test_lines_are_wrapped_between_words_in_a_terminal_and_nowhere_else(capsys, monkeypatch):
    line = "error: " + 9 * "no/such/folder-of-results "
    say(line.strip())
    assert capsys.readouterr().out == line.strip() + "\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    say(line.strip())
    shown = capsys.readouterr().out.splitlines()
    assert (len(shown), max(map(len, shown)) <= 80) == (4, True)
    assert " ".join(shown) == line.strip()


def test_a_figure_ends_with_its_line_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(KeyboardInterrupt), drawn(ErrorFigure()):
        raise KeyboardInterrupt
    shown = capsys.readouterr().out
    assert shown.endswith("checkpoint   \n")  # the last column of the table
    assert max(map(len, shown.splitlines())) <= 80


def test_models_says_which_to_take_and_lists_each(drift):
    lines = drift("models").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Take Tracker(budget=300): ")
    names = [line.split()[0] for line in lines if line.strip()]
    listed = names[names.index("model") + 1 :]
    assert [name for name in listed if name in {"Tracker", *MODELS}] == ["Tracker", *MODELS]
    assert "RBP budget, seed B 1 Cavallanti 2007" in [" ".join(line.split()) for line in lines]


def test_help_imports_nothing_heavy():
    heavy = "{'river', 'joblib', 'matplotlib', 'rich', 'kafka'}"
    code = (
        "import sys; from drift.cli import app; app(['--help'], standalone_mode=False); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.endswith("\n[]\n")


@pytest.mark.usefixtures("unrendered")
def test_track_prints_tables_and_says_where_the_files_are(drift, tmp_path):
    shown = drift(*QUICK)
    assert shown.exit_code == 0, shown.stderr
    assert "newswire: each model at its best" in shown.stdout
    assert "in results/track-newswire: " in shown.stdout
    assert "97 of 97 runs" in shown.stderr
    folder = tmp_path / "results" / "track-newswire"
    assert (folder / "error_vs_budget.png").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_second_call_computes_nothing(drift, tmp_path):
    runs = tmp_path / "out" / "runs.jsonl"
    arguments = [*QUICK, "--shifts", "0, 3", "--output", "out"]
    drift(*arguments)
    before = runs.read_bytes()
    shown = drift(*arguments)
    assert shown.exit_code == 0
    assert "runs" not in shown.stderr
    assert runs.read_bytes() == before


@pytest.mark.usefixtures("undrawn")
def test_the_seed_draws_stories_and_targets(drift, tmp_path):
    few = ["track", "--rows", "40", "--shifts", "3", "--models", "Perceptron", "--jobs", "1"]
    tracked, produced = [], []
    for seed in (0, 1):
        drift(*few, "--seed", str(seed), "--output", f"{seed}")
        runs = RunFolder(tmp_path / f"{seed}").read().values()
        whole = [run for run in runs if len(run["targets"]) == 4]
        tracked.append(({run["sha256"] for run in runs}, [run["targets"] for run in whole]))
        stream = pick("newswire", None, 40, 3, seed)
        produced.append((stream.documents.sha256, stream.targets))
    for (stories, targets), (other_stories, other_targets) in (tracked, produced):
        assert stories != other_stories
        assert targets != other_targets


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_keeps_the_runs_that_ended_and_says_how_to_continue(drift, tmp_path, monkeypatch):
    append = RunFolder.append

    def interrupted(self, *given):
        append(self, *given)
        if len(self.read()) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "append", interrupted)
    arguments = [*QUICK, "--shifts", "0"]  # 4 streams: Perceptron, and LBP with 2 budgets
    shown = drift(*arguments)
    assert shown.exit_code == 130
    assert (
        "kept in results/track-newswire; the same command again computes the rest" in shown.stderr
    )
    assert len(RunFolder(tmp_path / "results" / "track-newswire").read()) == 3
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "9 of 9 runs" in drift(*arguments).stderr


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("undrawn")
def test_a_torn_line_is_a_warning(drift, tmp_path):
    folder = RunFolder(tmp_path / "out")
    folder.runs.write_text('{"key": "a"')
    shown = drift(*QUICK, "--shifts", "0", "--output", "out")
    assert shown.exit_code == 0
    assert shown.stderr.startswith("warning: out/runs.jsonl: dropped the last line")


def test_a_full_disk_and_a_second_call_are_messages(drift, tmp_path, monkeypatch):
    def full(self, mode="r", *more, **others):
        if self.name == "runs.jsonl" and mode == "a":
            raise OSError(errno.ENOSPC, "No space left on device")
        return path_open(self, mode, *more, **others)

    path_open = Path.open
    monkeypatch.setattr(Path, "open", full)
    shown = drift(*QUICK, "--shifts", "0", "--output", "out")
    assert (shown.exit_code, "Traceback" in shown.stderr) == (2, False)
    assert "error: output out/runs.jsonl: No space left on device; " in shown.stderr
    monkeypatch.setattr(Path, "open", path_open)
    with RunFolder(tmp_path / "out").alone():
        shown = drift(*QUICK, "--shifts", "0", "--output", "out")
    assert shown.exit_code == 2
    assert shown.stderr.startswith("error: output out: another call is writing there: wait")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stream", "newswir"], "no stream 'newswir': did you mean 'newswire'?"),
        (["--models", "RPB"], "no model 'RPB': did you mean 'RBP'?"),
        (["--budgets", "10,many"], "--budgets takes whole numbers between commas, not '10,many'"),
        (["--budgets", "0"], "--budgets must be at least 1, not 0"),
        (["--shifts", "1.5"], "--shifts takes whole numbers"),
        (["--decays", "x"], "--decays takes numbers between commas, not 'x'"),
        (["--models", ""], "models is empty"),
        (["--rows", "0"], "--rows must be at least 1, not 0"),
        (
            ["--rows", "6", "--shifts", "7"],
            "7 shifts take 8 chunks, of one document or more: there are 6",
        ),
        (["--data", "nowhere", "--stream", "rcv1"], "the folder nowhere does not exist"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(drift, arguments, message):
    shown = drift("track", *arguments)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("error: ")
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_rows_are_sent_at_their_rate_and_what_a_wait_lost_is_made_up_for(monkeypatch):
    now, waits = [7.0], []
    monkeypatch.setattr("drift.cli.produce.time.monotonic", lambda: now[0])

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds + 0.25

    assert list(paced("abcd", 4.0, wait)) == [*"abcd"]
    assert waits == [0.0, 0.0, 0.0, 0.0]  # as late as that, each row is due already
    now, waits = [7.0], []
    assert list(paced("abc", 2.0, wait)) == [*"abc"]
    assert waits == [0.0, 0.25, 0.25]
    assert list(paced("abc", None, wait)) == [*"abc"]
    assert len(waits) == 3


def test_python_m_drift_is_the_command_line():
    shown = subprocess.run(
        [sys.executable, "-m", "drift", "models", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout.startswith("Usage: python -m drift models")


def test_output_that_nobody_reads_ends_it_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    shown = subprocess.run(
        [sys.executable, "-m", "drift", "models"],
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert shown.returncode == 1
    assert "rror" not in shown.stderr  # without a compiler there is a warning
    assert "ipe" not in shown.stderr


def test_what_is_a_number_of_seconds_has_units_everywhere():
    for words in pages():
        command = app
        for word in words:
            command = command.get_command(None, word)
        for one in command.params:
            if re.search(r"\bseconds\b", getattr(one, "help", None) or "", re.IGNORECASE):
                is_text = words == ("compare",) and one.name in {"moment", "delay"}  # columns, too
                assert one.metavar == ("TEXT" if is_text else "DURATION"), (words, one.name)


@pytest.mark.parametrize(
    ("options", "function"),
    [
        (Arena, arena),
        (Compare.shared, compare),
        (Reproduce, reproduce),
        (Track, track),
        (Experiment, run_all),
    ],
)
def test_a_command_has_the_defaults_of_its_function(options, function):
    parameters = signature(function).parameters
    names = [one.name for one in fields(options) if one.name in parameters]
    given = {name: parameters[name].default for name in names}
    expected = {name: value for name, value in given.items() if value is not Parameter.empty}
    assert {one.name: one.default for one in fields(options) if one.name in expected} == expected
    assert len(expected) > 2


def test_forks_are_those_of_comparisons():
    [forks] = [one for one in declared(Compare.shared) if one.field == "forks"]
    assert set(forks.choices) == set(FORKS)


def test_help_says_lists_defaults_and_what_serve_uses():
    def words(command):
        shown = CliRunner().invoke(app, [command, "--help"]).stdout
        return re.sub(r"-\s+", "-", " ".join(shown.split()))

    compared = words("compare")
    for text in (
        "[separated by commas; default: tracker,lbp,lr]",
        "[separated by commas; at least 0]",
        "[default: --no-predictions]",
    ):
        assert text in compared
    served, consumed = words("serve"), words("consume")
    fields = {one.field: one.flag for one in declared(Serve.shared)}
    assert Serve.unused <= fields.keys()
    for name in Serve.unused:
        assert f"{fields[name]} " in consumed
        assert f"{fields[name]} " not in served
    assert "--dead-letters " in served


def test_a_model_looked_up_in_the_package_is_pointed_to():
    with pytest.raises(ImportError, match=r"from drift\.models import Tracker"):
        from drift import Tracker  # noqa: F401, PLC0415
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from drift import nothing  # noqa: F401, PLC0415
    package = sys.modules["drift"]
    assert not hasattr(package, "Tracker")
    with pytest.raises(AttributeError, match=r"from drift\.models import Tracker"):
        _ = package.Tracker


@pytest.mark.sources
@pytest.mark.parametrize("path", ["drift/__init__.py", "setup.py"])
def test_an_older_python_is_refused(path, monkeypatch):
    monkeypatch.setattr("sys.version_info", (3, 10, 13))
    code = (Path(__file__).parents[1] / path).read_text("utf-8")
    with pytest.raises((ImportError, SystemExit), match=r"Python 3\.11 or later.*3\.10\.13"):
        exec(compile(code, path, "exec"), {"__name__": "older"})  # noqa: S102


def test_before_any_label_came_there_is_no_error():
    body = b'{"topic": "t", "partition": 0, "offset": 7, "predicted": 1, "label": null}'
    figure = ErrorFigure()
    figure.add([Message(Position("out", 0, 0), None, body)])
    console = Console(file=io.StringIO(), width=100)
    console.print(figure)
    shown = console.file.getvalue()
    assert "no label yet, 1 prediction; of labels that come later the worker's metrics" in shown
    assert "%" not in shown
    assert re.search(r"t:0 +0 +- +- +1 +0", shown)


@pytest.mark.parametrize("prompt", [click.prompt, click.confirm])
def test_a_question_that_nobody_answers_names_the_option(prompt):
    @dataclass(kw_only=True)
    class Asking(Command):
        def _run(self):
            click.echo(ask(prompt, "Sure?", "--yes"))

    unanswered = CliRunner().invoke(click.Command("asking", callback=Asking().answer), input="")
    assert unanswered.exit_code == 2
    assert unanswered.stderr.endswith("\nerror: nobody is there to answer: give --yes\n")
    answered = CliRunner().invoke(click.Command("asking", callback=Asking().answer), input="y\n")
    assert answered.output.splitlines()[-1] in {"y", "True"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_signal_at_a_question_is_no_missing_answer(number, code, terminal, monkeypatch, capsys):
    class Asking(Command):
        def _run(self):
            ask(click.confirm, "Sure?", "--yes")

    def interrupted(_):
        os.kill(os.getpid(), number)
        return "y"

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    monkeypatch.setattr("sys.stdin.isatty", lambda: terminal)
    command = click.Command("asking", callback=Asking().answer)
    assert command.main([], standalone_mode=False) == code
    assert capsys.readouterr().err == "\ninterrupted\n"


@pytest.mark.parametrize("leaves", [False, True])
def test_at_sigterm_every_command_cleans_up_and_its_handlers_end_with_it(leaves):
    """Also where a command takes the signals in its own way, before its worker does."""
    cleaned = []

    class Ending(Command):
        def _run(self):
            if leaves:
                leave_at_signals()
                return
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                pytest.fail("it went on")
            finally:
                cleaned.append(True)

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert before[0] is signal.SIG_DFL
    ended = CliRunner().invoke(click.Command("ending", callback=Ending().answer))
    if not leaves:
        assert (ended.exit_code, ended.stderr, cleaned) == (143, "interrupted\n", [True])
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_command_may_run_in_another_thread():
    class Saying(Command):
        def _run(self):
            click.echo("done")

    with ThreadPoolExecutor(1) as pool:
        command = click.Command("saying", callback=Saying().answer)
        assert pool.submit(CliRunner().invoke, command).result().output == "done\n"
