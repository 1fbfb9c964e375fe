"""Answers of a model: how they are made, and what is sent of them."""

from __future__ import annotations

import logging
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._late import ticket_for
from drift.consumers._json import plain, text_of
from drift.consumers.dead_letters import caught
from drift.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from drift._decision import Awaited, Decision
    from drift.consumers.options import WorkerOptions
    from drift.consumers.trouble_log import TroubleLog
    from drift.explain import Baseline
    from drift.types import Features, Label

__all__ = ["UNSEEN", "Answer", "Answering", "answer_of", "by_text", "largest"]

#: What a shadow has predicted that has not seen the features.
UNSEEN: Any = object()


class Answer(NamedTuple):
    """The predicted label, None before any is known, and the probability of each class.

    `chances` is None for a model without probabilities; `shadowed` is the shadow's prediction, None
    if it raised; `reasons` are the features' contributions, None where nobody asks for them;
    `ticket` is what the model was given for one; `score` is None for a model without scores.
    """

    predicted: Label
    chances: Mapping[Label, float] | None = None
    shadowed: Label = UNSEEN
    reasons: Mapping[str, float] | None = None
    ticket: Hashable = True
    score: Any = None


def answer_of(
    model: Any, features: Features, *, ticket: Hashable = True
) -> tuple[Any, Any, dict[Any, float] | None]:
    """Return label, score and probabilities; None for what a model does not know.

    `ticket` is that of `drift.models.Tracker.answer_one`; without, the model stays as it was.
    """
    at_once = getattr(model, "answer_one", None)
    if at_once is not None:
        return at_once(features, ticket=ticket)  # type: ignore[no-any-return]
    more = ticket_for(model, ticket)
    predicted = model.predict_one(features, **more)
    score = getattr(model, "decision_function_one", lambda _: None)(features)
    try:
        chances = model.predict_proba_one(features, **more)
    except NotImplementedError:  # as River has it for those that know none
        chances = None
    return predicted, score, chances


class Answering:
    """How the answers of a model are made: by a threshold, with reasons, if these are asked for.

    Parameters
    ----------
    options
        The worker's.
    trouble
        Where is said which predictions have no explanation.

    Attributes
    ----------
    decision : Decision or None
        The threshold; None where the model itself decides.
    baseline : Baseline or None
        What answers are explained against; None where they are not.
    awaited : Awaited or None
        Whether the class comes at all that is decided or measured, where one is named.

    Examples
    --------
    >>> import logging
    >>> from drift.consumers.options import WorkerOptions
    >>> from drift.consumers.trouble_log import TroubleLog
    >>> from drift.models import LBP
    >>> options = WorkerOptions(topic="news", group="readers", rate=0.1)
    >>> answering = Answering(options, TroubleLog(logging.getLogger()))
    >>> model = LBP(budget=9)
    >>> model.learn_one({"rain": 1.0}, True)
    >>> answer = answering.answer(model, {"rain": 1.0}, ticket=True)
    >>> answer.predicted, answering.beside(answer)
    (True, {'threshold': 0.5...})
    """

    def __init__(self, options: WorkerOptions, trouble: TroubleLog) -> None:
        self.positive = True if options.positive is None else options.positive
        self.decision: Decision | None = None
        self.awaited: Awaited | None = None
        self.baseline: Baseline | None = None
        self._most = options.explain  # reasons that are sent
        self._trouble = trouble
        goal = options.goal
        if options.positive is not None or goal is not None:
            from drift._decision import Awaited, Decision  # noqa: PLC0415 - takes a while

            self.awaited = Awaited(self.positive)
            self.decision = None if goal is None else Decision(*goal)
        if options.explain:
            from drift.explain import Baseline  # noqa: PLC0415 - takes a while

            self.baseline = Baseline()

    def answer(
        self, model: Any, features: Features, ticket: Hashable, *, label_only: bool = False
    ) -> Answer:
        """Return a model's answer.

        Parameters
        ----------
        model
            The model.
        features
            What is asked.
        ticket
            As of `answer_of`.
        label_only
            Leave out score and probabilities, where no threshold or explanation needs them.
        """
        score = chances = reasons = None
        if label_only and self.decision is None and self.baseline is None:
            predicted = model.predict_one(features, **ticket_for(model, ticket))
        else:
            predicted, score, chances = answer_of(model, features, ticket=ticket)
        if self.decision is not None and chances:
            predicted = self.decision.choose(self.positive, chances)
        predicted = plain(predicted)
        if self.baseline is not None and predicted is not None:
            reasons = self._reasons(model, features, predicted, self.baseline)
        return Answer(predicted, chances, reasons=reasons, ticket=ticket, score=score)

    def _reasons(
        self, model: Any, features: Features, label: Label, baseline: Baseline
    ) -> dict[str, float] | None:
        """Return the features' contributions; None where the model has none."""
        from drift.explain import Explainer  # noqa: PLC0415 - takes a while

        explanation, error = caught(Explainer(model, baseline).explain_one, features, label)
        if error is not None:
            line = f"a prediction has no explanation: {one_line(str(error))}"
            self._trouble.say(logging.WARNING, ("explanation", type(error)), line)
            return None
        return {str(name): value for name, value in explanation.contributions.items()}

    def beside(self, answer: Answer) -> dict[str, Any]:
        """Return what is sent beside the model's own answer, if asked: threshold, explanation."""
        more: dict[str, Any] = {}
        if self.decision is not None:
            more["threshold"] = self.decision.threshold
        if self.baseline is not None:
            reasons = answer.reasons
            more["explanation"] = reasons and dict(islice(reasons.items(), self._most))
        return more

    def learn_features(self, features: Features) -> None:
        """Have the baseline learn features, after they were answered."""
        if self.baseline is not None:
            self.baseline.learn_one(features)

    def learn_label(self, label: Label, answer: Answer) -> str:
        """Have the threshold learn a label; return what is to be warned of, once, else nothing."""
        if self.decision is not None and answer.chances:
            share = answer.chances.get(self.positive, 0.0)
            self.decision.learn(share, bool(label == self.positive))
        return "" if self.awaited is None else self.awaited.learn(label)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types by what there is."""
        parts = {"decision": self.decision, "awaited": self.awaited, "baseline": self.baseline}
        kept = {name: part.state() for name, part in parts.items() if part is not None}
        return kept | ({"positive": self.positive} if self.decision is not None else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state`: what it lacks, or has of another goal or class, starts anew.

        Raises
        ------
        ParameterError
            If it is no state; nothing is changed.
        """
        decision, awaited, baseline = self.decision, self.awaited, self.baseline
        is_same = state.get("positive", self.positive) == self.positive
        if decision is not None and is_same and "decision" in state:
            goal = decision.name, decision.value
            decision = type(decision).restore(state["decision"], goal)
        if awaited is not None and "awaited" in state:
            awaited = type(awaited).restore(state["awaited"], self.positive)
        if baseline is not None and "baseline" in state:
            baseline = type(baseline).restore(state["baseline"])
        self.decision, self.awaited, self.baseline = decision, awaited, baseline


def by_text(
    chances: Mapping[Any, float] | None, most: int | None = None
) -> dict[str, float] | None:
    """Return probabilities as JSON has them, by the text of the label; the largest `most`.

    Labels of one text, as 1 and "1", share an entry.

    >>> by_text({1: 0.25, "1": 0.5, "no": 0.25}, most=1)
    {'1': 0.75}
    """
    if chances is None:
        return None
    named: dict[str, float] = {text_of(label): share for label, share in chances.items()}
    if len(named) < len(chances):
        named = dict.fromkeys(named, 0.0)
        for label, share in chances.items():
            named[text_of(label)] += share
    return named if most is None else largest(named, most)


def largest(values: Any, most: int) -> Any:
    """Return the largest values of a dict; anything else as it is."""
    if isinstance(values, dict) and len(values) > most:
        return dict(nlargest(most, values.items(), key=itemgetter(1)))
    return values
