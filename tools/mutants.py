"""Change drift in small ways, one at a time, and list the changes that the fast suite lets pass.

    python tools/mutants.py [--seed S] [--count N] [--wanted SHARE] RESULTS.csv [PATH...]

Draws N places of the models, streams, experiments and consumers, or of the modules and folders
named, and one change at each: in Python by an operator of Cosmic Ray, in the Tracker's C and Cython
of a symbol, a number, a word or an assignment. Each is made in a copy of the tree, and built there
if need be; what does not compile is no mutant, and another one is drawn. Then tests run until one
fails. Of Python they are the fast tests and doctests that execute the line, or else the module, the
shortest first; of C and Cython those of the Tracker, then all that name it.

The results say what became of each mutant, and are written after each: a run that was stopped goes
on from them. A result holds while its module and the tests of its part stay as they are. Ends by an
error if less than the share is caught, or if a survivor is not in mutants.csv beside this file,
which says why no test should catch it. Needs the extras `test` and `mutants`, for C and Cython also
a compiler.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: What tells a place of a module from others, and what makes its mutant, if it has one.
    Place = tuple[str, Callable[[], "Mutant | None"]]

ROOT = Path(__file__).resolve().parents[1]
PARTS = [Path("drift", part) for part in ("models", "streams", "experiments", "consumers")]
#: Where C and Cython are changed. Of `tables.py` `setup.py` makes the header.
TRACKER = Path("drift/models/_tracker")
TABLES, HEADER = TRACKER / "tables.py", TRACKER / "tables.h"
#: Tests with a broker, a browser or a notebook would take most of the time.
CHOSEN = "not slow and not kafka and not browser and not notebooks"
COMPILED = f"{CHOSEN} and not plain"
FAST = ("-q", "-p", "no:cacheprovider", "-n0", "-m")
#: Tests of the compiled Tracker, those first that catch most.
FIRST = [f"tests/models/test_tracker_{name}.py" for name in ("parts", "twin")]
#: Seconds after which tests count as hanging, beside ten times what they take.
LIMIT = 120
#: Bytes of memory that a mutant may take.
MEMORY = 6 << 30
FIELDS = ("module", "line", "operator", "change", "fate", "by", "state")
#: Lines by which pytest names a test that fails.
OUTCOME = re.compile(r"^(?:FAILED|ERROR) ((?:tests|drift)/.*?)(?: - .*)?$", re.MULTILINE)


def digest(*parts: object) -> str:
    """Checksum of some texts."""
    return sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]


class Mutant(NamedTuple):
    """A module with one change, whose text is the new one."""

    module: Path
    line: int
    operator: str
    text: str

    def row(self) -> dict[str, str]:
        """What is known of it before it is tried."""
        before = self.module.read_text()
        lines = difflib.unified_diff(before.split("\n"), self.text.split("\n"), n=0, lineterm="")
        changed = [line for line in lines if re.match(r"[-+](?![-+])", line)]
        change = " ".join(f"{line[0]} {line[1:].strip()}" for line in changed)
        tests = sorted(Path("tests", self.module.parts[1]).rglob("*.py"))
        state = digest(before, *(file.read_text() for file in tests))
        values = str(self.module), str(self.line), self.operator, change, "", "", state
        return dict(zip(FIELDS, values, strict=True))


# --- changes of Python ----------------------------------------------------------------------------

#: Arithmetic on numbers that have no bits fails at once; it would only raise the share caught.
SENSELESS = re.compile(
    r".*BinaryOperator_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(RShift|LShift|Bit\w+)$|"
    r".*BinaryOperator_(RShift|LShift|Bit\w+)_(Add|Mul|Div|FloorDiv|Mod|Pow)$"
)


def python_places(module: Path, seed: int) -> Iterator[Place]:
    """Yield the places of a Python module, each with one of the changes that can be made there."""
    text, nodes = module.read_text(), list(ast_nodes(get_ast(module.read_text())))
    places = defaultdict(list)
    for name in operator_names():
        kind = get_operator(name)
        if not kind.arguments() and not SENSELESS.match(name):
            found = chain.from_iterable(map(kind().mutation_positions, nodes))
            for occurrence, place in enumerate(found):
                places[place].append((name, occurrence))
    for place, changes in places.items():
        name, occurrence = min(changes, key=lambda change: digest(seed, *change))
        yield str(place), partial(python_mutant, module, text, place[0][0], name, occurrence)


def python_mutant(module: Path, text: str, line: int, name: str, occurrence: int) -> Mutant | None:
    """Return a module with a change of Cosmic Ray's, None if it does the same or is no Python."""
    try:
        after = mutate_code(text, get_operator(name)(), occurrence)
        if after is None or meaning(after) == meaning(text):
            return None
    except (AttributeError, SyntaxError):  # it cannot replace an exception that has a dot
        return None
    return Mutant(module, line, name.removeprefix("core/"), after)


def meaning(code: str) -> str:
    """Return what a module does in a form that can be compared, without what is for types alone."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if hasattr(node, name):
                setattr(node, name, None)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.test, node.body = ast.Constant(0), []
        if isinstance(node, ast.FunctionDef) and "overload" in map(
            ast.unparse, node.decorator_list
        ):
            node.args, node.body = ast.arguments(), []
    return ast.dump(tree)


# --- changes of C and Cython ----------------------------------------------------------------------

#: What is no code: comments, texts and, in C, lines of the preprocessor.
SKIPPED = {
    ".h": r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|(?<![^\n])[ \t]*\#(?:\\\n|[^\n])*',
    ".pyx": r'\#[^\n]*|[rbf]?"""(?:.|\n)*?"""|[rbf]?"(?:\\.|[^"\\\n])*"',
}
SKIPPED[".pxi"] = SKIPPED[".pyx"]
#: Words and operators, and what each becomes. Those of two operands have spaces around them.
SWAPS = dict(
    pair.split()[:: 1 if forth else -1]
    for forth in (False, True)
    for pair in (
        *("< <=", "> >=", "== !=", "+ -", "// *", "/ *", "&& ||", "+= -=", "*= /=", "and or"),
        *("continue break", "min max", "True False"),
    )
)
NUMBER = r"(?<![\w.])(?:0x[0-9A-Fa-f]+u?|\d+\.\d*(?:e[-+]?\d+)?f?|\d+(?:e[-+]?\d+)?u?)(?![\w.])"
SYMBOL = r"(?<= )(?:[<>=!+*/-]=|//|&&|\|\||[<>+*/-])(?= )"
WORD = r"\b(?:and|or|continue|break|min|max|True|False)\b"
NOT = r"(?<![\w)\]])!(?=[\w(])|\bnot (?!in\b)"
PLACE = re.compile(f"(?P<number>{NUMBER})|(?P<swap>{SYMBOL}|{WORD})|(?P<negation>{NOT})")
#: A line, or what is behind a condition on it, that is an assignment and nothing else.
ASSIGNMENT = {
    ".h": re.compile(
        r"(?:^|\) |else )"
        r"(?P<drop>[*\w][\w>.\[\] +*-]*(?<! )(?: [-+*/|]?= |\+\+|--)[^;{}]*;|[\w>.-]+(?:\+\+|--);)$"
    ),
    ".pyx": re.compile(r"^(?P<drop>[\w.\[\]]+(?:, [\w.\[\]]+)* [-+*/]?= .*[^\\([{,])$"),
}
ASSIGNMENT[".pxi"] = ASSIGNMENT[".pyx"]
DECLARED = re.compile(
    r"^(?:const |static )*(?:\w+ \**(?:__restrict )?\w+(?:\[\w*\])?(?: =|,|;)|union|struct)"
)
#: Of these lines nothing but the time depends on what they say.
SPEED = re.compile(r"PREFETCH|prefetch|DRIFT_USUAL|DRIFT_AHEAD|DRIFT_ROLLED for")


def changed_number(number: str) -> str:
    """Return another number: 0 and 1 are exchanged, a whole one grows by 1, any other by half."""
    digits = number.rstrip("uf") if not number.startswith("0x") else number.rstrip("u")
    rest = number[len(digits) :]
    if digits.startswith("0x"):
        return f"{int(digits, 16) + 1:#x}{rest}"
    value = float(digits)
    if "." in digits or "e" in digits:
        other = {0.0: 1.0, 1.0: 0.0}.get(value, 1.5 * value)
        return f"{other!r}{rest}"
    return f"{ {0: 1, 1: 0}.get(int(digits), int(digits) + 1) }{rest}"


def code_lines(text: str, suffix: str) -> Iterator[tuple[int, int, str]]:
    """Yield number, offset and code of each line that does something; what is no code is blank."""
    kept = re.compile(SKIPPED[suffix], re.DOTALL).sub(
        lambda found: re.sub(r"[^\n]", " ", found[0]), text
    )
    depth, inside, offset, outer = 0, False, 0, ""
    for number, line in enumerate(kept.split("\n"), 1):
        code = line.strip()
        if suffix == ".h":
            if not depth:
                # A function's body follows its parameters; other braces are types and tables.
                before, brace, body = line.partition(") {")
                inside = bool(brace)
                if inside and body.strip(" }"):
                    blank = " " * len(before + brace)
                    yield number, offset, blank + body
            elif inside and code:
                yield number, offset, line
            depth += line.count("{") - line.count("}")
        elif code:
            if not line.startswith(" "):
                outer = code
            declares = re.match(
                r"cdef (?!.* = )|cpdef |def |class |from |import |cimport |@|include", code
            )
            external = outer.startswith(("cdef extern", "cdef list", "cdef double"))
            if not (external or declares or code.startswith(("'", '"'))) and line.startswith(" "):
                yield number, offset, line
        offset += len(line) + 1


def compiled_places(module: Path) -> Iterator[Place]:
    """Yield the places of a module of C or Cython, which are known however lines move."""
    text, suffix = module.read_text(), module.suffix
    seen: Counter[str] = Counter()
    for number, offset, line in code_lines(text, suffix):
        if SPEED.search(text.split("\n")[number - 1]):
            continue
        code, column = line.strip(), len(line) - len(line.lstrip())
        seen[code] += 1
        drops = []
        if not DECLARED.match(code) and not code.startswith("for "):
            drops = [ASSIGNMENT[suffix].search(code)]
        for match in (*PLACE.finditer(line), *filter(None, drops)):
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            if kind == "drop":
                start, end, after = start + column, end + column, ";" if suffix == ".h" else "pass"
            elif kind == "number":
                after = changed_number(match[0])
            else:
                after = SWAPS.get(match[0], "")
            name = match[0] if kind == "swap" else kind
            new = text[: offset + start] + after + text[offset + end :]
            place = f"{code}\n{seen[code]}\n{start - column}\n{name}"
            yield place, partial(Mutant, module, number, name, new)


# --- which are drawn ------------------------------------------------------------------------------


def modules_of(paths: Iterable[Path]) -> list[Path]:
    """Return the modules that can be changed among some paths."""
    files = chain.from_iterable([path] if path.is_file() else path.rglob("*") for path in paths)
    compiled = {path for path in TRACKER.iterdir() if path.suffix in SKIPPED} - {HEADER}
    return sorted(path for path in files if path.suffix == ".py" or path in compiled)


def drawn(modules: Iterable[Path], seed: int) -> Iterator[Mutant]:
    """Yield mutants in the order of checksums of their places.

    So a change to one module leaves most of the draw as it was.
    """
    places = {}
    for module in modules:
        is_python = module.suffix == ".py"
        for place, make in python_places(module, seed) if is_python else compiled_places(module):
            places[digest(seed, module, place)] = make
    print(f"{len(places)} places")
    yield from filter(None, (places[key]() for key in sorted(places)))


# --- which tests ----------------------------------------------------------------------------------


class Tests:
    """Which tests of some parts execute which lines, and how long they take; found by a run."""

    def __init__(self, parts: Iterable[str]) -> None:
        # pytest-cov has to be told here of the processes that tests/conftest.py would choose later.
        options = [f"-n{os.cpu_count() or 1}", "-vv", "--durations=0", "--durations-min=0"]
        options += ["--tb=no", "-rfE", "--cov=drift", "--cov-context=test", "--cov-report="]
        # Where a signal interrupts Coverage it waits for its own lock.
        options.append("--ignore=tests/models/test_interrupts.py")
        folders = [f"{folder}/{part}" for part in parts for folder in ("tests", "drift")]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *FAST, CHOSEN, *options, *folders],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode not in {0, 1}:
            raise SystemExit(f"the tests do not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in re.findall(r"^([\d.]+)s \w+ +(\S.*)$", run.stdout, re.MULTILINE):
            self.seconds[test] += float(seconds)
        # Tests that fail on drift as it is, or under coverage, can tell nothing of mutants.
        failing = set(OUTCOME.findall(run.stdout))
        print(f"{len(failing)} tests fail without a mutant and are left out")
        self._usable = self.seconds.keys() - failing
        self._data = CoverageData()
        self._data.read()

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's line, else its module, the shortest first."""
        of_line = self._data.contexts_by_lineno(str(mutant.module.absolute()))
        for contexts in (of_line.get(mutant.line, []), chain(*of_line.values())):
            tests = {context.rpartition("|")[0] for context in contexts} & self._usable
            if tests:
                return sorted(tests, key=self.seconds.__getitem__)
        return []


def tracker_tests() -> list[str]:
    """Return the files of tests of the Tracker, then those that name it."""
    own = sorted(map(str, Path("tests/models").glob("test_tracker*.py")))
    parts = [Path("tests", part) for part in ("models", "consumers", "experiments")]
    files = chain.from_iterable(part.glob("test_*.py") for part in parts)
    naming = sorted(str(file) for file in files if "racker" in file.read_text())
    return list(dict.fromkeys([*FIRST, *own, *naming]))


# --- what becomes of them -------------------------------------------------------------------------


def extensions() -> list[Path]:
    """Return the compiled modules, where they are built and where they are imported."""
    return [*Path("build").rglob("*.so"), *TRACKER.glob("*.so")]


def build() -> bool:
    """Build what has changed, without vectors; return whether it compiles."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    environment = os.environ | {"CFLAGS": "-DDRIFT_CLONES= -w"}
    before = {path: path.stat().st_mtime_ns for path in extensions()}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # A module that does not build is left out with a warning, as where there is no compiler.
    failed = run.returncode or "failed" in run.stdout + run.stderr
    return not failed and any(before.get(path) != path.stat().st_mtime_ns for path in extensions())


@cache
def build_first() -> float:
    """Build all as mutants are built, which then takes seconds; return what the tests take."""
    setup = Path("setup.py")
    setup.write_text(setup.read_text().replace('"-O3"', '"-O1"'))
    for built in extensions():
        built.unlink()
    compiles, started = build(), time.monotonic()
    if failing := failure(tracker_tests(), chosen=COMPILED) if compiles else "the build":
        raise SystemExit(f"the Tracker fails without a mutant: {failing}")
    return time.monotonic() - started


@contextmanager
def changed(mutant: Mutant) -> Iterator[bool]:
    """Change a module, and put it and what is built of it back; yields whether it compiles."""
    kept = {}
    if is_built := mutant.module == TABLES or mutant.module.suffix != ".py":
        build_first()
        files = (*extensions(), *TRACKER.glob("*.c"), HEADER)
        kept = {path: path.read_bytes() for path in files}
    text, stamp = mutant.module.read_text(), mutant.module.stat()
    mutant.module.write_text(mutant.text)
    try:
        yield not is_built or build()
    finally:
        mutant.module.write_text(text)
        os.utime(mutant.module, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        for path, content in kept.items():
            path.write_bytes(content)


def failure(tests: Iterable[str], limit: float | None = None, chosen: str = CHOSEN) -> str:
    """Run tests until one fails, and return its name, or what else ended them; else nothing."""
    Path("arguments.txt").write_text("\n".join(tests))  # more than a command line takes
    command = [sys.executable, "-m", "pytest", *FAST, chosen, "-x", "--tb=no", "-rfE"]
    with subprocess.Popen(
        [*command, "@arguments.txt"],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_DATA, (MEMORY, MEMORY)),  # noqa: PLW1509 - there are no threads
    ) as run:
        try:
            output, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            return "timeout"
    if run.returncode == 4 and "not found: " in output:  # a test whose name the mutant changes
        return failure(sorted({test.partition("::")[0] for test in tests}), limit, chosen)
    if run.returncode <= 0:
        return f"signal {-run.returncode}" if run.returncode else ""
    return "".join((OUTCOME.findall(output) or output.strip().split("\n")[-1:])[:1])


def tried(mutant: Mutant, tests: Callable[[], Tests]) -> dict[str, str]:
    """Return what becomes of a mutant."""
    if mutant.module.suffix == ".py":
        nearest, chosen = tests().of(mutant), CHOSEN
        limit = LIMIT + 10 * sum(map(tests().seconds.__getitem__, nearest))
    else:
        nearest, chosen, limit = tracker_tests(), COMPILED, LIMIT + 10 * build_first()
    with changed(mutant) as compiles:
        if not compiles:
            return {"fate": "no mutant"}
        by = failure(nearest, limit, chosen) if nearest else ""
    return {"fate": "caught" if by else "survived", "by": by}


# --- and the results ------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, none where there is no table yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    new.replace(path)


def copy_tree(folder: Path) -> None:
    """Copy what git knows of the tree, and the extensions that have been built in it."""
    listing = ["/usr/bin/env", "git", "ls-files", "-z"]
    files = subprocess.check_output(listing, cwd=ROOT, text=True).split("\0")
    built = [path.relative_to(ROOT) for path in (*ROOT.glob("drift/models/_*/*.so"), ROOT / HEADER)]
    for file in (*files[:-1], *built):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


def summary(rows: list[dict[str, str]], wanted: float) -> bool:
    """Print what became of the mutants; return whether that is enough."""
    fates = Counter(row["fate"] for row in rows)
    judged = {(row["module"], row["change"]) for row in rows_of(Path(__file__).with_suffix(".csv"))}
    left = [row for row in rows if row["fate"] == "survived"]
    open_ones = [row for row in left if (row["module"], row["change"]) not in judged]
    print(f"{len(rows)} mutants, caught: {fates['caught']}; survived: {len(left)}, not judged:")
    for row in open_ones:
        print(row["module"], row["line"], row["change"])
    return fates["caught"] >= wanted * len(rows) and not open_ones


def main() -> None:
    """Try the mutants that are drawn and not known yet, and say how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="what became of each, read and written")
    where = "a module or folder to draw from, of the sources"
    parser.add_argument("paths", type=Path, nargs="*", metavar="path", default=PARTS, help=where)
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=200, help="mutants to draw")
    parser.add_argument("--wanted", type=float, default=0.85, help="share that must be caught")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after so long")
    arguments = parser.parse_args()
    path, end = arguments.results.absolute(), time.monotonic() + arguments.seconds
    known = {tuple(row[name] for name in FIELDS[:4]): row for row in rows_of(path)}
    rows: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        os.chdir(folder)
        os.environ["PYTHONPATH"] = folder
        modules = modules_of(arguments.paths)
        tests = cache(lambda: Tests(sorted({module.parts[1] for module in modules})))
        for mutant in drawn(modules, arguments.seed):
            if len(rows) == arguments.count or time.monotonic() > end:
                break
            row = mutant.row()
            key = tuple(row[name] for name in FIELDS[:4])
            if known.get(key, {}).get("state") != row["state"]:
                known[key] = row | tried(mutant, tests)
                print(*(known[key][name] for name in FIELDS[:-1]), flush=True)
                write(path, known.values())
            rows += [known[key]] * (known[key]["fate"] != "no mutant")
        os.chdir(ROOT)
    if not summary(rows, arguments.wanted) or len(rows) < arguments.count:
        raise SystemExit("too few were caught, were not run, or survived and are not judged")


if __name__ == "__main__":
    main()
