"""What is compared: a classifier, cloned for each run, with an identity."""

from __future__ import annotations

from collections import UserList
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from river.base import Base, Classifier
from river.compose import Pipeline

from drift._late import final_step, with_late_labels
from drift.errors import ParameterError
from drift.experiments.comparison.categories import names_of, parts, taking_texts
from drift.experiments.comparison.identity import identity_of
from drift.experiments.rivals.resets import resetting

if TYPE_CHECKING:
    from drift.streams import Stream
    from drift.types import Features, Label

__all__ = ["Contender", "contenders"]

#: Examples that a model is tried on.
_TRIED = 20


class Traits(NamedTuple):
    """What a contender's models are, as long as nobody changes it.

    Attributes
    ----------
    identity
        Fingerprint of the model and of all its parameters, those of its parts included.
    description
        The model with its parameters, in one line.
    draws
        Whether it draws at random: whether it, or a part, has a parameter called ``seed``.
    may_use_drift
        Whether one of drift's models may have a part in it: see `identity_of`.
    """

    identity: str
    description: str
    draws: bool
    may_use_drift: bool


@dataclass(frozen=True)
class Contender:
    """A model to compare, as it is to be run.

    Parameters
    ----------
    model
        A classifier or pipeline of River's interface, which stays as it is: each run has a clone
        with its parameters at the time, not with what it has learnt. Or a class, or another
        factory.
    parameters
        What a class or factory is called with.
    adwin
        Start afresh where ADWIN finds that the error has changed.
    examples, categories
        A few with texts among their features, which the model is to take, and how many different
        texts there are; see `taking_texts`. `on` has them from a stream: nobody else need give
        them.
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

    def traits(self) -> Traits:
        """Make a fresh model, and say what it is."""
        model = self.make()
        # River's ensembles are lists, and would show what they hold, which is nothing yet.
        show = Base.__repr__ if isinstance(model, UserList) else repr
        identity, may_use_drift = identity_of(model)
        return Traits(
            identity,
            " ".join(show(model).split()),
            any("seed" in names_of(part) for part in parts(model)),
            may_use_drift,
        )


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
    if len({str(name) for name in models}) < len(models):
        raise ParameterError(f"two models have one name, as text: {list(models)}")
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
    last = final_step(model)
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
