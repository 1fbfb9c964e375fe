"""Change drift in small ways, one at a time, and list the changes that the fast suite lets pass.

    python tools/mutants.py [--seed S] [--count N] [--among PATH]... [--tests PATH]...
                            [--wanted SHARE] [--seconds T] RESULTS.csv

Draws N mutants of Cosmic Ray's: N places of the models, streams, experiments and consumers, or of
the modules and folders named, and one of the changes that its operators make at each. They are made
in a copy of the tree. First the tests that execute the changed line run, the shortest first, as
many as take a few seconds. Of a mutant that these let pass and nobody has judged, the fast tests
and doctests of its part of drift run, all of them, or those that are named. Where the module makes
a header, the extensions are built first.

The results say what became of each mutant, and are written after each: a run that was stopped goes
on from them. A mutant that was caught is tried again when its module changes; one that survived,
when the tests of its part change, too, unless the column `judgement` says why none should catch it.
Ends by an error if fewer than 85 %, or the share named, are caught or a survivor is not judged.
Needs the extras `test` and `mutants`.
More than 300 lines: one script, most of which chooses and runs tests.
"""

from __future__ import annotations

import argparse
import ast
import csv
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.work_item import MutationSpec, TestOutcome
from coverage import CoverageData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parent.parent
PARTS = [Path("drift", part) for part in ("models", "streams", "experiments", "consumers")]
#: Tests with a broker, a browser or a notebook would take most of the time.
CHOSEN = "not slow and not kafka and not browser and not notebooks"
FAST = ("-q", "-p", "no:cacheprovider", "-m", CHOSEN)
#: Seconds of tests of its line that a mutant is tried with before its whole part is tested.
NEAREST = 20.0
#: Seconds after which tests count as hanging: many times what they take. Whole parts take minutes.
LIMIT, PART_LIMIT = 120, 1200
WANTED = 0.85
#: A module of which `setup.py` makes a header.
TABLES, HEADER = (Path("drift/models/_tracker", name) for name in ("tables.py", "tables.h"))
#: The first four tell mutants apart.
FIELDS = (
    *("module", "line", "operator", "occurrence", "change"),
    *("fate", "by", "judgement", "module_state", "tests_state"),
)
#: Lines by which pytest names a test that fails.
OUTCOME = re.compile(r"^(?:FAILED|ERROR) ((?:tests|drift)/.*?)(?: - .*)?$", re.MULTILINE)
#: Arithmetic on numbers that have no bits fails at once; it would only raise the share caught.
SENSELESS = re.compile(
    r".*BinaryOperator_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(RShift|LShift|Bit\w+)$|"
    r".*BinaryOperator_(RShift|LShift|Bit\w+)_(Add|Mul|Div|FloorDiv|Mod|Pow)$"
)


# --- which mutants --------------------------------------------------------------------------------


def digest(*parts: object) -> str:
    """Checksum of some texts."""
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]


class Meaning(ast.NodeTransformer):
    """Leaves of a module what happens when it runs, without annotations."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Leave out what is for type checkers."""
        return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave out a variable's annotation."""
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Leave out a parameter's annotation."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """Leave out what a function returns, and a signature that is only for type checkers."""
        node.returns = None
        overload = any("overload" in ast.dump(one) for one in node.decorator_list)
        return None if overload else self.generic_visit(node)


def meaning(code: str) -> str | None:
    """Return what a module does in a form that can be compared, None if it is no Python."""
    try:
        return ast.dump(Meaning().visit(ast.parse(code)))
    except SyntaxError:
        return None


def mutations(module: Path) -> Iterator[MutationSpec]:
    """Yield all mutations that Cosmic Ray knows for a module."""
    nodes = list(ast_nodes(get_ast(module.read_text())))
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments() or SENSELESS.match(name):
            continue
        operator = kind()
        places = chain.from_iterable(map(operator.mutation_positions, nodes))
        for occurrence, (start, end) in enumerate(places):
            yield MutationSpec(module, name, occurrence, start, end)


def draw(seed: int, count: int, among: Iterable[Path]) -> tuple[list[MutationSpec], int]:
    """Draw mutants of modules, each of another place; also return how many places there are.

    Places and mutations come in the order of their checksums, so that a change to one module leaves
    most of the draw as it was.
    """
    places = defaultdict(list)
    for path in among:
        for module in [path] if path.is_file() else path.rglob("*.py"):
            for one in mutations(module):
                places[str(module), one.start_pos, one.end_pos].append(one)
    drawn: list[MutationSpec] = []
    for place in sorted(places, key=lambda place: digest(seed, *place)):
        if len(drawn) == count:
            break
        one = min(places[place], key=lambda one: digest(seed, one.operator_name, one.occurrence))
        before = one.module_path.read_text()
        # Cosmic Ray cannot replace an exception that has a dot in its name.
        with suppress(AttributeError):
            after = mutate_code(before, get_operator(one.operator_name)(), one.occurrence)
            if meaning(after) not in (None, meaning(before)):
                drawn.append(one)
    return drawn, len(places)


# --- which tests ----------------------------------------------------------------------------------


class Tests:
    """Which tests of some parts execute which lines, and how long they take; found by a run."""

    def __init__(self, parts: Iterable[str], only: list[str]) -> None:
        command = [sys.executable, "-m", "pytest", *FAST, "-vv", "--durations=0", "--tb=no", "-rfE"]
        # pytest-cov has to be told here of the processes that tests/conftest.py would choose later.
        workers = 0 if only else os.cpu_count() or 1
        cover = [f"-n{workers}", "--cov=drift", "--cov-context=test", "--cov-report="]
        # Where a signal interrupts Coverage it waits for its own lock.
        cover.append("--ignore=tests/models/test_interrupts.py")
        self.only = only
        tests = only or chain(*map(folders, sorted(set(parts))))
        run = subprocess.run(
            [*command, "--durations-min=0", *cover, *tests],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode not in {0, 1}:
            raise SystemExit(f"the tests do not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        #: Tests that fail on drift as it is, or under coverage, can tell nothing of mutants.
        self.failing = set(OUTCOME.findall(run.stdout))
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in re.findall(r"^([\d.]+)s \w+ +(\S.*)$", run.stdout, re.MULTILINE):
            self.seconds[test] += float(seconds)
        self._data = CoverageData()
        self._data.read()

    def nearest(self, mutant: MutationSpec) -> list[str]:
        """Return the shortest of the tests that execute a mutant's line, else its module."""
        of_line = self._data.contexts_by_lineno(str(mutant.module_path.absolute()))
        lines = [of_line.get(mutant.start_pos[0], []), list(chain(*of_line.values()))]
        for contexts in lines:
            tests = {context.rpartition("|")[0] for context in contexts} & self.seconds.keys()
            if tests:
                return self._first(sorted(tests - self.failing, key=self.seconds.__getitem__))
        return []

    def _first(self, tests: Iterable[str]) -> list[str]:
        """Take tests for as long as they may take in all."""
        taken, total = [], 0.0
        for test in tests:
            total += self.seconds[test]
            if taken and total > NEAREST:
                break
            taken.append(test)
        return taken


def folders(part: str) -> list[str]:
    """Return where the tests and doctests of a part are."""
    return [f"tests/{part}", f"drift/{part}"]


# --- what becomes of them -------------------------------------------------------------------------


def row_of(mutant: MutationSpec) -> dict[str, str]:
    """Return what tells a mutant from others, as its row has it."""
    name, place = mutant.operator_name.removeprefix("core/"), str(mutant.start_pos[0])
    return dict(
        zip(FIELDS, (str(mutant.module_path), place, name, str(mutant.occurrence)), strict=False)
    )


def attempt(mutant: MutationSpec, arguments: Iterable[str], limit: int) -> dict[str, str]:
    """Return the change and whether tests catch it, and the first of them that does."""
    # In a file, as they may be more than a command line takes.
    Path("arguments.txt").write_text("\n".join(arguments))
    test = [sys.executable, "-m", "pytest", *FAST, "-x", "--tb=no", "-rfE", "@arguments.txt"]
    built = {}
    if mutant.module_path == TABLES:
        built = {path: path.read_bytes() for path in [HEADER, *Path("drift").rglob("*.so")]}
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        test = ["sh", "-c", f"CFLAGS=-DDRIFT_CLONES= {shlex.join(build)} && {shlex.join(test)}"]
    result = mutate_and_test([mutant], shlex.join(test), limit)
    for path, content in built.items():
        path.write_bytes(content)
    if result.test_outcome == TestOutcome.INCOMPETENT or result.output is None:
        raise SystemExit(f"{mutant} cannot be tried: {result.output}")
    lines = [line for line in (result.diff or "").split("\n") if re.match(r"[-+](?![-+])", line)]
    row = {"change": " ".join(f"{line[0]} {line[1:].strip()}" for line in lines), "by": ""}
    if result.test_outcome == TestOutcome.SURVIVED:
        return row | {"fate": "survived"}
    by = OUTCOME.findall(result.output) or result.output.strip().split("\n")[-1:]
    return row | {"fate": "caught", "by": "".join(by[:1]) or "a crash"}


def nearest(mutant: MutationSpec, tests: Tests) -> dict[str, str]:
    """Try a mutant with the tests of its line; what they let pass stays open."""
    chosen = tests.nearest(mutant)
    result = attempt(mutant, ["-n0", *chosen], LIMIT) if chosen else {"by": ""}
    # A test whose name the mutant has changed is not found, which catches nothing.
    caught = re.match(r"tests/|drift/|timeout", result["by"])
    return result if caught else result | {"fate": "open", "by": ""}


def part(mutant: MutationSpec, tests: Tests) -> dict[str, str]:
    """Try a mutant with all fast tests of its part."""
    but = [f"--deselect={test}" for test in tests.failing]
    return attempt(
        mutant, [*but, *(tests.only or folders(mutant.module_path.parts[1]))], PART_LIMIT
    )


# --- and the results ------------------------------------------------------------------------------


def states(row: dict[str, str]) -> dict[str, str]:
    """Checksums of what a mutant's fate depends on."""
    module = Path(row["module"])
    tests = sorted(Path("tests", module.parts[1]).rglob("*.py"))
    return {
        "module_state": digest(module.read_text()),
        "tests_state": digest(*(file.read_text() for file in tests)),
    }


def known(path: Path, drawn: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return a row for each mutant drawn, with what the results have of it that still holds."""
    rows = []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    old = {tuple(row[field] for field in FIELDS[:4]): row for row in rows}
    results = []
    for one in drawn:
        new = one | states(one)
        row = old.get(tuple(new[field] for field in FIELDS[:4]), {})
        settled = row.get("fate") == "caught" or row.get("judgement")
        holds = ["module_state"] if settled else ["module_state", "tests_state"]
        if row.get("fate") == "open" and row["judgement"]:
            row["fate"] = "survived"  # minutes of tests would tell no more
        results.append(row if row and all(row[one] == new[one] for one in holds) else new)
    return results


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the results."""
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(row for row in rows if "fate" in row)
    new.replace(path)


def copy_tree(folder: Path) -> None:
    """Copy what git knows of the tree, and the extensions that have been built in it."""
    listing = ["/usr/bin/env", "git", "ls-files", "-z"]
    files = subprocess.check_output(listing, cwd=ROOT, text=True).split("\0")
    built = [
        str(path.relative_to(ROOT)) for path in (*ROOT.glob("drift/models/_*/*.so"), ROOT / HEADER)
    ]
    for file in (*files[:-1], *built):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


def summary(rows: list[dict[str, str]], drawn: str, wanted: float) -> bool:
    """Print what became of the mutants; return whether that is enough."""
    fates = Counter(row.get("fate", "not run") for row in rows)
    left = [row for row in rows if row.get("fate") == "survived"]
    judged = sum(bool(row["judgement"]) for row in left)
    tried = len(rows) - fates["not run"]
    share = fates["caught"] / max(1, tried)
    print(f"{len(rows)} {drawn}: {tried} tried, {fates['open']} of them not yet with all tests")
    print(f"caught: {fates['caught']}, {share:.1%} of those tried")
    print(f"survived: {len(left)}, of which {judged} are judged")
    return share >= wanted and fates["caught"] + judged == len(rows)


def main() -> None:
    """Try the mutants that are drawn and not known yet, and say how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="what became of each, read and written")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=200, help="mutants to draw")
    where = "a module or folder to draw from"
    parser.add_argument("--among", type=Path, action="append", metavar="PATH", help=where)
    only = "tests that run, of all that its part has"
    parser.add_argument("--tests", action="append", default=[], metavar="PATH", help=only)
    parser.add_argument("--wanted", type=float, default=WANTED, help="share that must be caught")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after so long")
    arguments = parser.parse_args()
    path, end = arguments.results.absolute(), time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        os.chdir(folder)
        os.environ["PYTHONPATH"] = folder
        mutants, places = draw(arguments.seed, arguments.count, arguments.among or PARTS)
        rows = known(path, map(row_of, mutants))
        if left := [row for row in rows if row.get("fate", "open") == "open"]:
            tests = Tests((Path(row["module"]).parts[1] for row in left), arguments.tests)
            print(f"{len(tests.failing)} tests fail without a mutant and are left out")
            for before, tried in ((None, nearest), ("open", part)):
                for mutant, row in zip(mutants, rows, strict=True):
                    if row.get("fate") == before and time.monotonic() < end:
                        row.update({"judgement": row.get("judgement", "")} | tried(mutant, tests))
                        print(
                            *(row[field] for field in ("module", "line", "fate", "by")), flush=True
                        )
                        write(path, rows)
        os.chdir(ROOT)
    write(path, rows)
    if not summary(rows, f"mutants of {places} places by seed {arguments.seed}", arguments.wanted):
        raise SystemExit("too few are caught, or some are open, not run or not judged")


if __name__ == "__main__":
    main()
