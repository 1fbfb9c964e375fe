"""A model for each key of the messages, as for each customer.

A topic is partitioned by its key, and the workers of a group share the partitions. Each partition
is a claim, with a checkpoint and a `drift.consumers.checkpoints.keyed_store.ModelStore` of its own.

With a prior, the topic's own model learns everything, and a key's model begins as a copy of it, at
the first example of the key that is learnt; until then it answers for the key. Without one a key's
model begins as one that has learnt nothing. So what is learnt depends on the log alone, and not on
which models happened to be in memory.

A key that `drift keys` deletes is dropped at the next checkpoint. What was sent of it before is not
learnt again; after that it begins as a new one. So does a key that has learnt nothing for `expire`
seconds of the log.

A model whose bytes cannot be read gives its key's messages to the dead letters; the other keys go
on. Where the store as a whole cannot be read or written, the worker ends.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from drift._checks import counted
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.stored_keys import StoredKeys
from drift.consumers.dead_letters import NO_FAULT_OF_IT
from drift.consumers.learner import Learner
from drift.consumers.replay import sent_first
from drift.errors import CheckpointError, DriftError, MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.checkpoints.keyed_file import Lineage
    from drift.consumers.codec import Codec, Example
    from drift.consumers.keyed_models import KeyedModels
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Message, Outgoing
    from drift.types import Features, Label

__all__ = ["KeyedLearner", "key_of", "name_unused"]

log = logging.getLogger("drift.consumers")


def key_of(codec: Codec, example: Example) -> str:
    """Return the key of an example that has a model of its own, or refuse one without."""
    if example.key is None:
        raise MessageError(str(codec.key), "is absent: send the key there that has a model")
    return str(example.key)


class KeyedLearner(Learner):
    """A learner with a model for each key.

    Parameters
    ----------
    model
        The topic's own, which learns all where there is a prior; else what new keys begin as.
    codec, metrics, options
        As of `Learner`; examples have a key.
    models
        The models of the keys.
    """

    def __init__(
        self,
        model: Any,
        codec: Codec,
        metrics: Metrics,
        options: WorkerOptions,
        models: KeyedModels,
    ) -> None:
        super().__init__(model, codec, metrics, options)
        self.models = models
        self._model_key = ""
        self._time = -1
        self._own: Any = None  # the model of the key; None before it has learnt

    def take(self, message: Message) -> list[Outgoing]:
        """Predict and learn a message by the model of its key; see `Learner.take`."""
        answer = super().take(message)
        self.models.evict()
        return answer

    def prepare_models(self) -> Callable[[], Lineage]:
        """Return what writes the models, and returns their lineage."""
        now = max((clock.time for clock in self.clocks.values()), default=-1)
        return self.models.prepare(now)

    def share_memory(self, learners: int) -> None:
        """Have no more models in memory than one of so many learners may, the next time."""
        self.models.most = max(1, self.options.max_models // learners)

    def note(self) -> None:
        """Have the metrics show how far it is."""
        self.metrics.keyed = {
            "models": self.models.count,
            "models_in_memory": len(self.models),
            "model_loads": self.models.loads,
        }
        super().note()

    def close(self) -> None:
        """Close the store of the models."""
        super().close()
        self.models.close()

    def _learn(self, message: Message, time: int) -> list[Outgoing]:
        self._time = time
        return super()._learn(message, time)

    def _learn_example(self, message: Message, example: Example) -> list[Outgoing]:
        self._model_key = key_of(self.codec, example)
        try:
            self._own = self.models.get(self._model_key, self._time)
        except NO_FAULT_OF_IT:
            raise
        except CheckpointError as problem:
            raise MessageError(
                f"{self.codec.key} {self._model_key!r:.60}",
                f"has a model that cannot be read ({problem}): roll back, or delete its rows in "
                "models.sqlite, and it starts anew",
            ) from None
        if self.models.any_deleted and self.models.is_deleted(self._model_key, sent_first(message)):
            example = example._replace(label=None)  # predicted, but not learnt again
        return super()._learn_example(message, example)

    @property
    def _predictor(self) -> Any:
        return self.model if self._own is None else self._own

    def _update(
        self, features: Features, label: Label, weight: float | None, ticket: Hashable
    ) -> bool:
        if self.options.prior:
            super()._update(features, label, weight, ticket)
        own = self._own
        if own is None and self.options.prior:
            own = deepcopy(self.model)  # which has learnt it
        else:
            if own is None:
                own = self.model.clone()
            else:
                # Before it learns, as one that raises may have changed.
                self.models.changed(self._model_key, own)
            own.learn_one(features, label, **({} if weight is None else {"w": weight}))
        self.models.changed(self._model_key, own, self._time)
        return True


def name_unused(folder: CheckpointFolder, topic: str, partitions: int) -> None:
    """Warn of models of keys in partitions that their topic no longer has, as it was recreated.

    `partitions` is how many it has, 0 where that is not known.
    """
    numbers = [number for number in folder.parts(topic) if 0 < partitions <= number]
    if not numbers:
        return
    parts, keys = [folder.folder((topic, number)) for number in sorted(numbers)], 0
    for part in parts:
        with suppress(DriftError):  # what is damaged is not counted
            for files, header in newest(part):
                keys += sum(1 for _ in StoredKeys(files, header["models"]))
    log.warning(
        "%s: %s in %s, partitions that %s no longer has. Their keys, and others that come to "
        "another partition now, begin anew. Give the topic %s to use them again, or remove these "
        "folders",
        *(folder.path, counted(keys, "model"), ", ".join(part.name for part in parts), topic),
        counted(max(numbers) + 1, "partition"),
    )
