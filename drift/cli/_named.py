"""Models as the command line and TOML files name them, and as a checkpoint's configuration does.

A table ``{"class": "RBP", "budget": 500, "kernel": {"class": "Polynomial", "degree": 4}}`` and the
text ``RBP(budget=500, kernel=Polynomial(degree=4))`` mean the same. A class ``module:function`` is
a function of the user's that returns a model, a River pipeline say.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift import kernels, models
from drift._checks import check_names
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["build", "configuration", "drift_models", "imported", "parse", "table_of"]


def parse(text: str) -> dict[str, Any]:
    """Read ``RBP(budget=500)``, ``RBP`` or either behind ``module:`` as a table; runs nothing.

    Raises
    ------
    ParameterError
        If it is none of these.

    Examples
    --------
    >>> parse("RBP(budget=500, kernel=Polynomial(degree=4))")
    {'class': 'RBP', 'budget': 500, 'kernel': {'class': 'Polynomial', 'degree': 4}}
    """
    in_module = ":" in text.partition("(")[0]
    module, colon, name = text.partition(":") if in_module else ("", "", text)
    try:
        table = _table(ast.parse(name.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        table = None
    if not isinstance(table, dict) or "class" not in table or (in_module and not module.strip()):
        raise ParameterError(
            f"{text!r} is not a model with named parameters: write RBP(budget=500), or "
            "module:RBP(budget=500) for one that is not drift's"
        )
    return table | {"class": module.strip() + colon + table["class"]}


def _table(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return {"class": node.id}
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.args:
            raise ValueError
        parameters = {str(word.arg): _table(word.value) for word in node.keywords}
        return {"class": node.func.id, **parameters}
    return ast.literal_eval(node)


def build(table: Mapping[str, Any]) -> Any:
    """Build the model, kernel or whatever a table names.

    Raises
    ------
    ParameterError
        If there is no such class or parameter, or a value that it refuses.

    Examples
    --------
    >>> build({"class": "LBP", "budget": 9, "kernel": {"class": "Linear"}}).budget
    9
    >>> build({"class": "LBP", "budgt": 9})
    Traceback (most recent call last):
    drift.errors.ParameterError: LBP has no parameter 'budgt': did you mean 'budget'?
    """
    kind, parameters = _split(table)
    made = {name: build(value) if _is_table(value) else value for name, value in parameters.items()}
    try:
        return kind(**made)
    except ParameterError:
        raise
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{table['class']}: {error}") from None


def configuration(table: Mapping[str, Any], prefix: str = "model") -> dict[str, Any]:
    """Return all that makes the model what it is, defaults too, as JSON values by name.

    Examples
    --------
    >>> configuration({"class": "LBP", "budget": 9})
    {'model': 'LBP', 'model.budget': 9, 'model.kernel': 'Polynomial', 'model.kernel.degree': 4,
     'model.kernel.coef0': 1.0, 'model.kernel.normalize': True}
    """
    kind, parameters = _split(table)
    entries: dict[str, Any] = {prefix: table["class"]}
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.default is not parameter.empty
    }
    for name, value in {**defaults, **parameters}.items():
        if name == "kernel" and value is None and ":" not in table["class"]:
            default = kernels.DEFAULT_KERNEL
            value = {"class": type(default).__name__, **asdict(default)}  # noqa: PLW2901
        if _is_table(value):
            entries |= configuration(value, f"{prefix}.{name}")
        else:
            entries[f"{prefix}.{name}"] = value
    return entries


def table_of(entries: Mapping[str, Any], prefix: str = "model") -> dict[str, Any]:
    """Return the table of which `configuration` made these entries.

    Examples
    --------
    >>> table_of(configuration({"class": "LBP", "budget": 9, "kernel": {"class": "RBF"}}))
    {'class': 'LBP', 'budget': 9, 'kernel': {'class': 'RBF', 'gamma': 1.0, 'normalize': False}}
    """
    table = {"class": entries[prefix]}
    for name, value in entries.items():
        parent, _, parameter = name.rpartition(".")
        if parent == prefix:
            inner = any(other.startswith(f"{name}.") for other in entries)
            table[parameter] = table_of(entries, name) if inner else value
    return table


def imported(name: str) -> Any:
    """Import ``module:name``, from the current folder as well.

    Raises
    ------
    ParameterError
        If there is no such thing.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ParameterError(f"{name!r} cannot be imported: {error}") from None


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and "class" in value


def _split(table: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return what to call, and with which parameters, all of which it has."""
    parameters = {name: value for name, value in table.items() if name != "class"}
    name = table.get("class")
    if not isinstance(name, str):
        raise ParameterError("a model needs a class: class = 'RBP'")
    kind = imported(name) if ":" in name else _named(name)
    if name == "Tracker" and "delay" in parameters:
        raise ParameterError("Tracker has no delay: write late = true; any delay is followed")
    check_names(f"{name} has no parameter", parameters, inspect.signature(kind).parameters)
    return kind, parameters


def drift_models() -> dict[str, Callable[..., Any]]:
    """Return drift's models by name."""
    return {"Tracker": models.Tracker, **models.MODELS}


def _named(name: str) -> Callable[..., Any]:
    if "." in name:
        written = ":".join(name.rsplit(".", 1))
        raise ParameterError(f"{name!r} has no colon between module and class: write {written!r}")
    others = (
        models.OneVsRest,
        models.Averaged,
        models.Threshold,
        kernels.Linear,
        kernels.Polynomial,
        kernels.RBF,
    )
    known = drift_models() | {kind.__name__: kind for kind in others}
    check_names("no model or kernel", [name], known)
    return known[name]
