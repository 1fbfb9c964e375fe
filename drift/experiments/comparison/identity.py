"""Which model it is: a fingerprint of its classes, their code and all its parameters.

It is of a model in memory, as the code of anyone's model, in a notebook too, is found there alone.
Of drift's own code `drift.experiments.code` has another, of sources: that of objects in memory
would be another for each version of Python.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Mapping
from itertools import chain
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river.base import Base

from drift.experiments.comparison.categories import parameters_of

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Identity", "identity_of"]

#: Where packages are installed: Python takes as long to say so as all else does here.
_INSTALLED = sysconfig.get_path("purelib"), sysconfig.get_path("platlib")


class Identity(NamedTuple):
    """What a fresh model is, to a run's key."""

    #: 16 hexadecimal digits that tell it from all that behave otherwise.
    fingerprint: str
    #: Whether one of drift's models is in it, or code of the user's that may make one.
    may_use_drift: bool


def identity_of(model: Any) -> Identity:
    """Return a fingerprint of a model, and whether drift's models may have a part in it.

    Of installed packages it has the version, of other code what that says. drift's models and
    kernels are there by name: `drift.experiments.code.code_fingerprint` is of their code.

    Parameters
    ----------
    model
        It has learnt nothing.

    Examples
    --------
    >>> from drift.experiments.comparison.identity import identity_of
    >>> from drift.models import LBP
    >>> from river.naive_bayes import GaussianNB
    >>> from river.preprocessing import StandardScaler
    >>> identity_of(LBP(5)) == identity_of(LBP(5)), identity_of(LBP(5)) == identity_of(LBP(6))
    (True, False)
    >>> models = StandardScaler() | LBP(5), StandardScaler() | GaussianNB()
    >>> [identity_of(model).may_use_drift for model in models]
    [True, False]
    """
    code: list[Any] = []
    told = repr(_canonical(model, [], code))
    may_use_drift = any(
        one.__module__.startswith("drift.models")
        or not (one.__module__.startswith("drift.") or _version_of(one) is not None)
        for one in code
    )
    return Identity(hashlib.sha256(told.encode()).hexdigest()[:16], may_use_drift)


def _canonical(value: Any, above: list[int], code: list[Any]) -> Hashable:
    """What decides how a fresh object behaves, as nested tuples whose repr does not change.

    Parameters
    ----------
    value
        An object, a class or a function.
    above
        Where the objects are that it is part of.
    code
        Classes and functions that were met before, to which it adds.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, type | FunctionType):
        if value in code:
            return "the code above", code.index(value)
        code.append(value)
        if isinstance(value, type) and (version := _version_of(value)) is not None:
            return f"{value.__module__}.{value.__qualname__}", version
    elif id(value) in above:
        return "the object above", above.index(id(value))
    above = [*above, id(value)]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, set | frozenset):
        inside: list[Any] = sorted(repr(_canonical(item, above, [*code])) for item in value)
    else:
        inside = [_canonical(item, above, code) for item in _inside(value)]
    return type(value).__name__, *inside


def _version_of(code: type | FunctionType) -> str | None:
    """Return the version of the installed package that has a class or function.

    None where only the code itself says which one it is: in a script, a notebook, a checkout.
    """
    if code.__module__.startswith(("drift.models", "drift.kernels")):
        return ""  # a run's key has their code by itself
    package = code.__module__.partition(".")[0]
    if package in sys.stdlib_module_names:
        return ""
    module = sys.modules.get(package)
    if not str(getattr(module, "__file__", "")).startswith(_INSTALLED):
        return None
    return str(getattr(module, "__version__", ""))


def _inside(value: Any) -> list[Any]:
    """What an object is made of."""
    if isinstance(value, Mapping | list | tuple):
        return list(value.items() if isinstance(value, Mapping) else value)
    if isinstance(value, type):
        own = {name: _function_of(member) for name, member in vars(value).items()}
        told = [
            pair
            for pair in own.items()
            if isinstance(pair[1], FunctionType)
            or not pair[0].startswith("_")
            or (_is_plain(pair[1]) and not pair[0].startswith("__"))
        ]
        return [value.__qualname__, *told, value.__bases__]
    if isinstance(value, FunctionType):
        code, cells = value.__code__, value.__closure__ or ()
        known = value.__globals__
        used = [(name, known[name]) for name in _globals_in(code) if name in known]
        return [
            value.__qualname__,
            _instructions(code),
            value.__defaults__,
            value.__kwdefaults__,
            [cell.cell_contents for cell in cells],
            [pair for pair in used if _is_own_code(pair[1]) or _is_plain(pair[1])],
        ]
    if isinstance(value, Base):
        return [type(value), parameters_of(value)]
    return _as_pickled(value)


def _as_pickled(value: Any) -> list[Any]:
    """What pickle would keep of an object: its class, arguments, state and items."""
    try:
        reduced = value.__reduce_ex__(2)
    except TypeError:  # what cannot be pickled, such as a lock, decides nothing
        return [type(value)]
    if isinstance(reduced, str):
        return [reduced]
    return [*reduced[:3], *(list(items) for items in reduced[3:5] if items is not None)]


def _instructions(code: CodeType) -> list[Any]:
    """Return what code says, that of its inner functions included, wherever it stands."""
    constants = [_instructions(c) if inspect.iscode(c) else c for c in code.co_consts]
    return [code.co_code, code.co_names, constants]


def _globals_in(code: CodeType) -> list[str]:
    """Return the global names that code looks up, those of its inner functions included."""
    steps = dis.get_instructions(code)
    own = [step.argval for step in steps if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}]
    inner = [_globals_in(constant) for constant in code.co_consts if inspect.iscode(constant)]
    return list(dict.fromkeys([*own, *chain.from_iterable(inner)]))


def _is_own_code(value: Any) -> bool:
    return isinstance(value, type | FunctionType) and _version_of(value) is None


def _is_plain(value: Any) -> bool:
    """Whether a value is a constant: a number, a text, or a collection of such."""
    if isinstance(value, Mapping):
        return _is_plain([*value.keys(), *value.values()])
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)


def _function_of(member: Any) -> Any:
    """Return the function of a property, class method, static method or cached function."""
    if isinstance(member, property):
        member = member.fget
    return inspect.unwrap(getattr(member, "__func__", member))
