"""What is compared: a classifier, cloned for each run, with an identity."""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from collections import UserList
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Base, Classifier
from river.compose import Pipeline

from drift._late import with_late_labels
from drift.errors import ParameterError
from drift.experiments.comparison.categories import (
    last_of,
    names_of,
    parameters_of,
    parts,
    taking_texts,
)
from drift.experiments.rivals import resetting

if TYPE_CHECKING:
    from collections.abc import Hashable

    from drift.streams import Stream
    from drift.types import Features, Label

__all__ = ["Contender", "contenders"]

#: Examples that a model is tried on.
_TRIED = 20


@dataclass(frozen=True)
class Contender:
    """A model to compare, as it is to be run.

    Parameters
    ----------
    model
        A classifier or pipeline of River's interface, which stays as it is: each run has a clone
        with its parameters, not with what it has learnt. Or a class, or another factory.
    parameters
        What a class or factory is called with.
    adwin
        Start afresh where ADWIN finds that the error has changed.
    examples, categories
        A few with texts among their features, which the model is to take, and how many different
        texts there are; see `taking_texts`.
    late
        Labels come late. A `Tracker` gets ``late=True`` then, unless it was given `late`, in a
        `Threshold` and at the end of a pipeline, too. One in any other model does not.

    Examples
    --------
    >>> from drift.experiments import Contender
    >>> from drift.models import LBP
    >>> Contender(LBP, {"budget": 10}, adwin=True).make().model.budget
    10
    """

    model: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    adwin: bool = False
    examples: Sequence[tuple[Features, Label]] = ()
    categories: int = 0
    late: bool = False

    def on(self, stream: Stream, *, late: bool = False) -> Contender:
        """Return the contender as it takes the texts among a stream's features, and its labels."""
        contender = replace(self, late=True) if late and not self.late else self
        if not stream.categories:
            return contender
        tried = (pair for pair in stream if any(isinstance(v, str) for v in pair[0].values()))
        return replace(
            contender,
            examples=tuple(islice(tried, _TRIED)),
            categories=sum(stream.categories.values()),
        )

    def make(self, seed: int | None = None) -> Any:
        """Make a fresh model.

        Parameters
        ----------
        seed
            What each parameter called ``seed`` is; None: as it is, and 0 where it is None.

        Raises
        ------
        ParameterError
            There is no classifier, or it has learnt what cannot be undone.
        """
        model = self.model
        if not isinstance(model, Base) and callable(model):
            try:
                model = model(**self.parameters)
            except TypeError as error:
                raise ParameterError(
                    f"{_name(model)} cannot be called with {sorted(self.parameters) or 'nothing'} "
                    f"({error}): give a model, or Contender(class, parameters)"
                ) from error
        elif self.parameters:
            raise ParameterError(
                f"{type(model).__name__} has its parameters: give the class, or none beside it"
            )
        _refuse(model)
        if self.late and not self.adwin:
            model = with_late_labels(model)
        fresh = _seeded(model, seed)
        if self.examples:
            fresh = taking_texts(fresh, self.examples, self.categories)
        return resetting(fresh) if self.adwin else fresh

    @cached_property
    def _made(self) -> Any:
        """One of the models that it makes, which stays fresh."""
        return self.make()

    @property
    def draws(self) -> bool:
        """Whether it draws at random: whether it, or a part, has a parameter called ``seed``."""
        return any("seed" in names_of(part) for part in parts(self._made))

    @property
    def is_of_drift(self) -> bool:
        """Whether it, or a part, is one of drift's models."""
        return any(type(part).__module__.startswith("drift.models") for part in parts(self._made))

    @property
    def description(self) -> str:
        """The model with its parameters, in one line."""
        # River's ensembles are lists, and would show what they hold, which is nothing yet.
        show = Base.__repr__ if isinstance(self._made, UserList) else repr
        return " ".join(show(self._made).split())

    @cached_property
    def identity(self) -> str:
        """Fingerprint of the model and of all its parameters, those of its parts included."""
        return hashlib.sha256(repr(_canonical(self._made, [], [])).encode()).hexdigest()[:16]


def contenders(models: Any) -> dict[str, Contender]:
    """Contenders by name, from a dict, a list or one model."""
    if isinstance(models, Contender | Base) or not isinstance(models, Mapping | Sequence):
        models = [models]
    if not isinstance(models, Mapping):
        named: dict[str, Any] = {}
        for model in models:
            name = _name(model)
            twins = sum(other == name or other.startswith(f"{name} (") for other in named)
            named[f"{name} ({twins + 1})" if twins else name] = model
        models = named
    if not models:
        raise ParameterError("models is empty: give at least one classifier")
    return {
        str(name): model if isinstance(model, Contender) else Contender(model)
        for name, model in models.items()
    }


def _name(model: Any) -> str:
    if isinstance(model, Contender):
        return _name(model.model)
    if isinstance(model, Pipeline):
        return " | ".join(_name(step) for step in model.steps.values())
    return str(getattr(model, "__name__", type(model).__name__))


def _refuse(model: Any) -> None:
    """Raise ParameterError for what is no classifier."""
    last = last_of(model)
    if isinstance(last, Classifier) or (
        not isinstance(last, Base) and all(hasattr(last, m) for m in ("predict_one", "learn_one"))
    ):
        return
    hint = "give an object of River's interface, a class or a function that makes one"
    if isinstance(model, str):
        hint = "give the model itself: drift.models.LBP(), say"
    what = f"a {type(model).__name__}" if isinstance(model, Base) else f"{model!r:.80}"
    raise ParameterError(f"{what} is not a classifier: {hint}")


def _seeded(model: Any, seed: int | None) -> Any:
    """Clone a model; None among its seeds becomes 0, or all of them become `seed`."""
    if not isinstance(model, Base):
        return model
    fresh = model.clone()
    for part in parts(fresh):
        if "seed" in names_of(part) and (seed is not None or part.seed is None):  # type: ignore[attr-defined]
            # As by assignment, which drift's models refuse: the clone below is what is used.
            vars(part)["seed"] = 0 if seed is None else seed
    # What was made of the old seeds in constructors is made anew.
    return fresh.clone()


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
    installed = sysconfig.get_path("purelib"), sysconfig.get_path("platlib")
    if not str(getattr(module, "__file__", "")).startswith(installed):
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
            if isinstance(pair[1], FunctionType) or not pair[0].startswith("_")
        ]
        return [value.__qualname__, *told, value.__bases__]
    if isinstance(value, FunctionType):
        code, cells = value.__code__, value.__closure__ or ()
        used = [value.__globals__.get(name) for name in code.co_names]
        return [
            value.__qualname__,
            _told(code),
            value.__defaults__,
            [cell.cell_contents for cell in cells],
            [u for u in used if isinstance(u, type | FunctionType) and _version_of(u) is None],
        ]
    if isinstance(value, Base):
        return [type(value), parameters_of(value)]
    try:
        reduced = value.__reduce_ex__(2)
    except TypeError:  # what cannot be pickled, such as a lock, decides nothing
        return [type(value)]
    return [reduced] if isinstance(reduced, str) else list(reduced[:3])


def _told(code: CodeType) -> list[Any]:
    """Return what code says, that of its inner functions included, wherever it stands."""
    constants = [_told(c) if inspect.iscode(c) else c for c in code.co_consts]
    return [code.co_code, code.co_names, constants]


def _function_of(member: Any) -> Any:
    """Return the function of a property, class method, static method or cached function."""
    if isinstance(member, property):
        member = member.fget
    return inspect.unwrap(getattr(member, "__func__", member))
