"""Lint the pages' prose, offline: proselint, the house's own rules, and long sentences.

`python tools/prose.py [PAGE...]` prints what it finds and ends with 1 if there is any. Code and
tables are left out. The rules are in `prose.toml` beside this file.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from proselint.checks import __register__
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((ROOT / "tools" / "prose.toml").read_text("utf-8"))
#: Not prose: fences, indented code, rows of tables, headings, comments, targets of links, tags.
CODE = re.compile(
    r"^ *```.*?^ *```$|^(?: {4}|\t)[^\n]*$|^[|#][^\n]*$|<!--.*?-->|(?<=\])\([^)]*\)|<[^>\n]+>",
    re.DOTALL | re.MULTILINE,
)
NAMES = re.compile(r"`([^`]*)`")


def pages() -> list[Path]:
    """Return the pages that are written by hand for users."""
    left_out = {ROOT / name for name in RULES["left_out"]}
    result = [page for pattern in RULES["pages"] for page in ROOT.glob(pattern)]
    return sorted(page for page in result if page not in left_out)


def prose(text: str) -> str:
    """Return a page without its code, each line where it was, and code in a line as one word."""
    text = CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    return NAMES.sub(lambda match: re.sub(r"[^\w\n]", "_", match[1]), text)


def problems_of(path: Path) -> list[tuple[int, str]]:
    """Return lines of a page and what is wrong there."""
    text = prose(path.read_text("utf-8"))
    enabled = dict.fromkeys(RULES["proselint"], True)
    results = LintFile(path, text).lint({"checks": enabled, "max_errors": 1000})
    out = [(one.pos[0], one.check_result.message) for one in results]
    for rule in RULES["house"]:
        out += [
            (text[: match.start()].count("\n") + 1, f"{match[0]!r}: {rule['but']}")
            for match in re.finditer(rule["not"], text, re.IGNORECASE)
        ]
    for match in re.finditer(r"[A-Z][^.!?:;\n]*(?:\n(?!\n|[-#|\d])[^.!?:;\n]*)*", text):
        words = len(match[0].split())
        if words > RULES["words"]:
            out.append((text[: match.start()].count("\n") + 1, f"{words} words in a sentence"))
    return sorted(out)


def main() -> int:
    """Lint the pages named, or all; say where and what."""
    CheckRegistry().register_many(__register__)
    problems = 0
    for page in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        for line, message in problems_of(page):
            problems += 1
            print(f"{page.resolve().relative_to(ROOT)}:{line}: {message}")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
