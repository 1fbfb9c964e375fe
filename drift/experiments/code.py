"""Which code of drift a result depends on: a fingerprint of modules, and of all that they import.

It is of sources. A model, whose code may be anyone's, has one of its own:
`drift.experiments.comparison.identity`.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import drift

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["code_fingerprint"]

_SOURCES = {".py", ".pyx", ".pxi", ".h"}


@cache
def code_fingerprint(*modules: str, without: str | None = None) -> str:
    """Return a fingerprint of modules of drift and of all of drift that these import.

    It is of what code of Python does: comments, docstrings and the texts of errors may be reworded,
    and each version of Python gives the same. The packages above a module do not count.

    Parameters
    ----------
    *modules
        Their names. A package stands for all of its files, those of C and Cython, too. None: all
        of drift.
    without
        A package that does not count.

    Examples
    --------
    >>> from drift.experiments.code import code_fingerprint
    >>> code_fingerprint("drift.kernels") == code_fingerprint("drift.models")
    False
    """
    root = Path(drift.__file__).parent
    waiting = [path for name in modules or ["drift"] for path in _files_of(root, name)]
    told: dict[str, bytes] = {}
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name in told or (without and path.is_relative_to(_place(root, without))):
            continue
        told[name] = path.read_bytes()
        if path.suffix == ".py":
            told[name], imports = _parsed(told[name])
            waiting += [file for module in imports for file in _file_of(root, module)]
    return hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()[:16]


@cache
def _parsed(source: bytes) -> tuple[bytes, frozenset[str]]:
    """Return what a file of Python does, and the names of all that it imports."""
    tree = _Unworded().visit(ast.parse(source))
    return hashlib.sha256(_as_text(tree).encode()).digest(), frozenset(_imports(tree))


def _as_text(value: Any) -> str:
    """Return a tree as a text, without empty fields: later versions of Python have more."""
    if isinstance(value, ast.AST):
        pairs = ((name, getattr(value, name, None)) for name in value._fields)
        filled = [f"{name}={_as_text(one)}" for name, one in pairs if one is not None and one != []]
        return f"{type(value).__name__}({','.join(filled)})"
    return f"[{','.join(map(_as_text, value))}]" if isinstance(value, list) else repr(value)


def _place(root: Path, name: str) -> Path:
    return root.joinpath(*name.split(".")[1:])


def _file_of(root: Path, name: str) -> list[Path]:
    """Return the file of a module; none where the name is not one of drift's."""
    if name.partition(".")[0] != "drift":
        return []
    place = _place(root, name)
    return [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]


def _files_of(root: Path, name: str) -> list[Path]:
    """Return the files of a package, or the one file of a module, which has to exist."""
    inside = [path for path in _place(root, name).rglob("*") if path.suffix in _SOURCES]
    return inside or [_file_of(root, name)[0]]


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield names that may be modules, also of imports in functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class _Unworded(ast.NodeTransformer):
    """Leaves out docstrings, imports for types alone, and texts where an error is raised."""

    _raising = False

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self._raising = True
        try:
            return self.generic_visit(node)
        finally:
            self._raising = False

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_text = self._raising and isinstance(node.value, str)
        return ast.Constant("") if is_text else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("") if self._raising else self.generic_visit(node)
