"""The arena's models, each with its defaults, and grids for those that are cheap enough."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from river import (
    ensemble,
    forest,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    tree,
)

from drift.experiments.comparison.contender import Contender
from drift.experiments.rivals import MOA, Retrained
from drift.experiments.rivals.moa import available
from drift.kernels import RBF, Linear, Polynomial
from drift.models import LBP, RBP, Forgetron, OneVsRest, PassiveAggressive, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.streams.stream import Stream

__all__ = ["MODELS", "Family", "contenders_of"]

_BUDGET = 300


class Family(NamedTuple):
    """A model and a grid of other settings. Hindsight chooses the best.

    `make` takes the stream that is to be learnt, and a setting without its "scaled", which says
    whether features are standardised.
    """

    make: Callable[..., Any]
    grid: tuple[dict[str, Any], ...] = ()
    #: Takes features as they are; the others get those of tables standardised.
    raw: bool = False
    #: Draws at random, and costs much: it has several seeds on few streams.
    ensemble: bool = False
    #: Tables get the deviations that the Tracker has by itself: see `drift.features`.
    deviations: bool = False
    #: Runs on tables alone: texts have too many features.
    tables: bool = False
    #: Runs on texts alone.
    texts: bool = False
    #: Runs with late labels alone: at once it is the same as another model.
    late: bool = False
    #: What it comes from.
    library: str = "River"

    @property
    def available(self) -> bool:
        """Whether the library that it comes from is installed."""
        return self.library != "MOA" or available()


def _plain(model: Callable[..., Any], _: Stream, **parameters: Any) -> Any:
    """Return a model for any number of classes."""
    return model(**parameters)


def _binary(model: Callable[..., Any], stream: Stream, **parameters: Any) -> Any:
    """Return a binary model of River's, for more classes one for each."""
    binary = model(**parameters)
    return multiclass.OneVsRestClassifier(binary) if _are_several(stream) else binary


def _logistic(stream: Stream, rate: float = 0.01) -> Any:
    """Return River's logistic regression, or softmax regression."""
    several, two = linear_model.SoftmaxRegression, linear_model.LogisticRegression
    return (several if _are_several(stream) else two)(optimizer=optim.SGD(rate))


def _bagging(model: Callable[..., Any], _: Stream) -> Any:
    return model(tree.HoeffdingTreeClassifier(), n_models=10, seed=0)


def _of_drift(model: Callable[..., Any], stream: Stream, **parameters: Any) -> Any:
    """Return a model of drift's; of one that is binary, for more classes one for each."""
    made = model(**parameters)
    handles = isinstance(made, Tracker | PassiveAggressive) or not _are_several(stream)
    return made if handles else OneVsRest(made)


def _are_several(stream: Stream) -> bool:
    """Whether there are more than two classes."""
    return len(stream.classes) > 2


_KERNELS = (
    Linear(),
    Polynomial(degree=2),
    *(RBF(gamma) for gamma in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)),
)
_BY_KERNEL = tuple({"kernel": kernel} for kernel in _KERNELS)
#: Where a feature has one value within a class, a Gaussian of it is of no use.
_BY_SCALER = ({"scaled": True},)
_BY_RATE = tuple({"rate": rate} for rate in (0.003, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))

#: For texts. At River's rate of 0.01 rows of unit norm move the weights so little that most
#: predictions are the majority's. Of the grid this has the lowest mean error on development texts.
_HIGH_RATE = Family(partial(_logistic, rate=10.0), texts=True)

_ours = partial(Family, library="drift")
_moas = partial(Family, library="MOA", raw=True, tables=True)
#: By name. "ADWIN" is added to those that start afresh where it finds a change. MOA's have the
#: defaults of CapyMOA: 100 trees in each of the three ensembles.
MODELS: dict[str, Family] = {
    "Tracker": _ours(partial(_of_drift, Tracker, budget=_BUDGET), raw=True),
    "Tracker 100": _ours(partial(_of_drift, Tracker, budget=100), raw=True),
    "Tracker late=False": _ours(
        partial(_of_drift, Tracker, budget=_BUDGET, late=False), raw=True, late=True
    ),
    "LBP": _ours(partial(_of_drift, LBP, budget=_BUDGET), _BY_KERNEL),
    "RBP": _ours(partial(_of_drift, RBP, budget=_BUDGET, seed=0), _BY_KERNEL),
    "Forgetron": _ours(partial(_of_drift, Forgetron, budget=_BUDGET), _BY_KERNEL),
    "PassiveAggressive": _ours(partial(_of_drift, PassiveAggressive, budget=_BUDGET), _BY_KERNEL),
    "logistic regression": Family(_logistic, _BY_RATE),
    "logistic regression with ADWIN": Family(_logistic),
    "logistic regression with deviations": Family(_logistic, deviations=True),
    "logistic regression at rate 10": _HIGH_RATE,
    "logistic regression at rate 10 with ADWIN": _HIGH_RATE,
    "perceptron": Family(partial(_binary, linear_model.Perceptron)),
    "PA": Family(
        partial(_binary, linear_model.PAClassifier),
        tuple({"C": C} for C in (0.01, 0.1, 10.0)),
    ),
    "ALMA": Family(partial(_binary, linear_model.ALMAClassifier)),
    "naive Bayes": Family(partial(_plain, naive_bayes.GaussianNB), _BY_SCALER, raw=True),
    "neighbours": Family(partial(_plain, neighbors.KNNClassifier)),
    "Hoeffding tree": Family(partial(_plain, tree.HoeffdingTreeClassifier), _BY_SCALER, raw=True),
    "Hoeffding adaptive tree": Family(
        partial(_plain, tree.HoeffdingAdaptiveTreeClassifier, seed=0), _BY_SCALER, raw=True
    ),
    "retrained boosting": Family(partial(_plain, Retrained), raw=True, library="scikit-learn"),
    "EFDT": Family(partial(_plain, tree.ExtremelyFastDecisionTreeClassifier), raw=True),
    "ARF": Family(partial(_plain, forest.ARFClassifier, seed=0), raw=True, ensemble=True),
    "ARF with deviations": Family(
        partial(_plain, forest.ARFClassifier, seed=0), raw=True, ensemble=True, deviations=True
    ),
    "SRP": Family(
        partial(_plain, ensemble.SRPClassifier, n_models=10, seed=0),
        raw=True,
        ensemble=True,
    ),
    "leveraging bagging": Family(
        partial(_bagging, ensemble.LeveragingBaggingClassifier), raw=True, ensemble=True
    ),
    "ADWIN bagging": Family(
        partial(_bagging, ensemble.ADWINBaggingClassifier), raw=True, ensemble=True
    ),
    "MOA SGBT": _moas(partial(MOA.of, "StreamingGradientBoostedTrees")),
    "MOA ARF": _moas(partial(MOA.of, "AdaptiveRandomForestClassifier")),
    "MOA SRP": _moas(partial(MOA.of, "StreamingRandomPatches")),
    "MOA HAT": _moas(partial(MOA.of, "HoeffdingAdaptiveTree")),
    "MOA PLASTIC": _moas(partial(MOA.of, "PLASTIC")),
}


def contenders_of(name: str, stream: Stream, *, sparse: bool) -> dict[str, Contender]:
    """Contenders of a family on a stream: its defaults, and ``name @ k`` for the grid.

    Parameters
    ----------
    name
        In `MODELS`.
    stream
        What they learn.
    sparse
        Whether its rows are texts, which nothing standardises.

    Examples
    --------
    >>> from drift.experiments.arena.models import contenders_of
    >>> from drift.experiments.arena.streams import STREAMS
    >>> list(contenders_of("PA", STREAMS["phishing"].make(), sparse=False))
    ['PA', 'PA @ 0', 'PA @ 1', 'PA @ 2']
    """
    family = MODELS[name]
    settings: dict[str, dict[str, Any]] = {name: {}}
    settings |= {f"{name} @ {k}": setting for k, setting in enumerate(family.grid)}
    return {
        key: Contender(
            partial(_made, family, stream, **{"scaled": not (sparse or family.raw)} | setting),
            adwin=name.endswith("ADWIN"),
        )
        for key, setting in settings.items()
    }


def _made(family: Family, stream: Stream, *, scaled: bool, **setting: Any) -> Any:
    model = family.make(stream, **setting)
    return preprocessing.StandardScaler() | model if scaled else model
