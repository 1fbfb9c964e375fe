"""Change the Tracker's C and Cython in small ways, and list the changes that tests let pass.

    python tools/mutants_compiled.py [--seed S] [--count N] [--seconds T] RESULTS.csv

The sibling of `mutants.py`, whose results have the same form and are read and judged alike. Draws N
places of the code: an operator, a number, a word or an assignment. Comments, declarations and the
preprocessor's lines are no places, nor is what only changes the time that something takes.

Each mutant is built in a copy of the tree without vectors, in a few seconds; what does not compile
is no mutant, and another one is drawn. Then the Tracker's tests on the compiled core run, those
first that catch most. Of what these let pass and nobody has judged, all fast tests that name the
Tracker run. Needs a C compiler, Cython, setuptools and the extras `test` and `mutants`.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mutants import FAST, FIELDS, OUTCOME, copy_tree, digest, known, summary, write

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACKER = Path("drift/models/_tracker")
#: Made by a Python module, which `mutants.py` changes.
MADE = "tables.h"
WANTED = 0.9
#: Steps by which a mutant is tried: tests, and seconds after which they count as hanging, which are
#: many times what they take.
STEPS = (
    (["tests/models/test_tracker_parts.py", "tests/models/test_tracker_twin.py"], 90),
    (sorted(map(str, Path("tests/models").glob("test_tracker*.py"))), 150),
)
LAST_LIMIT = 900
#: Bytes of memory that a mutant may take.
MEMORY = 6 << 30

# --- which mutants --------------------------------------------------------------------------------

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


class Mutant(NamedTuple):
    """One change: at a place of a file, text that becomes another one."""

    module: Path
    start: int
    end: int
    operator: str
    after: str
    line: int
    column: int

    def row(self) -> dict[str, str]:
        """What its row says of it before it is tried."""
        before = self.module.read_text().split("\n")[self.line - 1]
        text = self.module.read_text()
        new = (text[: self.start] + self.after + text[self.end :]).split("\n")[self.line - 1]
        values = (str(self.module), str(self.line), self.operator, str(self.column))
        change = f"- {before.strip()} + {new.strip()}"
        return dict(zip(FIELDS, (*values, change), strict=False))


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


def places(module: Path) -> Iterator[tuple[str, list[Mutant]]]:
    """Yield what tells each place from others, however lines move, and the mutants of it."""
    text, suffix = module.read_text(), module.suffix
    seen: Counter[str] = Counter()
    for number, offset, line in code_lines(text, suffix):
        if SPEED.search(text.split("\n")[number - 1]):
            continue
        code = line.strip()
        seen[code] += 1
        column = len(line) - len(line.lstrip())
        drops = (
            []
            if DECLARED.match(code) or code.startswith("for ")
            else [ASSIGNMENT[suffix].search(code)]
        )
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
            mutant = Mutant(module, offset + start, offset + end, name, after, number, start)
            yield f"{code}\n{seen[code]}\n{start - column}\n{name}", [mutant]


def draw(seed: int) -> list[Mutant]:
    """Return all mutants, in the order of their checksums."""
    result = {}
    for module in sorted(
        path for path in TRACKER.iterdir() if path.suffix in SKIPPED and path.name != MADE
    ):
        for place, mutants in places(module):
            for one in mutants:
                result[digest(seed, module, place)] = one
    return [result[key] for key in sorted(result)]


# --- what becomes of them -------------------------------------------------------------------------


def build() -> bool:
    """Build what has changed; return whether it compiles."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    environment = os.environ | {"CFLAGS": "-DDRIFT_CLONES= -w"}
    before = {path: path.stat().st_mtime_ns for path in extensions()}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # A module that does not build is left out with a warning, as where there is no compiler.
    failed = run.returncode or "failed" in run.stdout + run.stderr
    return not failed and any(before.get(path) != path.stat().st_mtime_ns for path in extensions())


def extensions() -> list[Path]:
    """Return the compiled modules, where they are built and where they are imported."""
    return [*Path("build").rglob("*.so"), *TRACKER.glob("*.so")]


@contextmanager
def changed(mutant: Mutant) -> Iterator[None]:
    """Change a file, and put it and what was built of it back."""
    kept = {path: path.read_bytes() for path in (*extensions(), *TRACKER.glob("*.c"))}
    text, stamp = mutant.module.read_text(), mutant.module.stat()
    mutant.module.write_text(text[: mutant.start] + mutant.after + text[mutant.end :])
    try:
        yield
    finally:
        mutant.module.write_text(text)
        os.utime(mutant.module, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        for path, content in kept.items():
            path.write_bytes(content)


def limited() -> None:
    """Bound the memory of this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def attempt(tests: list[str], limit: int) -> dict[str, str]:
    """Return whether tests catch what is built, and the first of them that does."""
    marks = [*FAST[:-1], f"{FAST[-1]} and not plain"]
    command = [sys.executable, "-m", "pytest", *marks, "-n0", "-x", "--tb=no", "-rfE", *tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=limited,  # noqa: PLW1509 - there are no threads
    ) as run:
        try:
            output, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            return {"fate": "caught", "by": "timeout"}
    if run.returncode == 0:
        return {"fate": "survived", "by": ""}
    if run.returncode < 0:
        return {"fate": "caught", "by": f"signal {-run.returncode}"}
    by = OUTCOME.findall(output) or output.strip().split("\n")[-1:]
    return {"fate": "caught", "by": "".join(by[:1])}


def last_tests() -> list[str]:
    """Return all other files of tests that name the Tracker and need not much more than it."""
    result = [
        path
        for part in ("models", "consumers", "experiments")
        for path in Path("tests", part).glob("test_*.py")
    ]
    return sorted(
        str(path)
        for path in result
        if "racker" in path.read_text() and str(path) not in STEPS[-1][0]
    )


def first(_row: dict[str, str]) -> dict[str, str]:
    """Try what is built with the Tracker's tests; what they let pass stays open."""
    for tests, limit in STEPS:
        result = attempt(tests, limit)
        if result["fate"] == "caught":
            return result
    return {"fate": "open", "by": ""}


def last(row: dict[str, str]) -> dict[str, str]:
    """Try what is built with all other tests, unless what survives has been judged."""
    return {"fate": "survived", "by": ""} if row["judgement"] else attempt(last_tests(), LAST_LIMIT)


def counts(row: dict[str, str]) -> bool:
    """Whether a place is of those that were drawn, and makes a mutant."""
    return row.get("fate") in {"caught", "survived", "open"}


def main() -> None:
    """Try the mutants that are drawn and not known yet, and say how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="what became of each, read and written")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=120, help="mutants to draw")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after so long")
    parser.add_argument("--list", action="store_true", help="only show what is drawn")
    arguments = parser.parse_args()
    path, root, end = arguments.results.absolute(), Path.cwd(), time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        os.chdir(folder)
        os.environ["PYTHONPATH"] = folder
        mutants = draw(arguments.seed)
        rows = known(path, (one.row() for one in mutants))
        if arguments.list:
            for row in rows[: arguments.count]:
                print(*(row[field] for field in ("module", "line", "operator", "change")))
            return
        setup = Path("setup.py")
        setup.write_text(setup.read_text().replace('"-O3"', '"-O1"'))
        for built in extensions():
            built.unlink()
        if not build() or (result := attempt(*STEPS[-1]))["fate"] == "caught":
            raise SystemExit(f"the tests do not run without a mutant: {result}")
        for before, tried in ((None, first), ("open", last)):
            for mutant, row in zip(mutants, rows, strict=True):
                enough = before is None and sum(map(counts, rows)) >= arguments.count
                if row.get("fate") != before or enough or time.monotonic() > end:
                    continue
                started = time.monotonic()
                row.setdefault("judgement", "")
                with changed(mutant):
                    row.update(tried(row) if build() else {"fate": "no mutant", "by": ""})
                print(
                    *(row[field] for field in ("module", "line", "change", "fate", "by")), end=" "
                )
                print(f"({time.monotonic() - started:.0f} s)", flush=True)
                write(path, rows)
        os.chdir(root)
    write(path, rows)
    tried = [row for row in rows if counts(row)]
    tried += [{}] * (arguments.count - len(tried))
    drawn = f"mutants of {len(mutants)} places by seed {arguments.seed}"
    if not summary(tried[: arguments.count], drawn, WANTED):
        raise SystemExit("too few are caught, or some are open, not run or not judged")


if __name__ == "__main__":
    main()
