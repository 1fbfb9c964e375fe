"""What is stored of a model, in pickles, copies, checkpoints and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from drift._format import FORMAT, check_format
from drift.errors import CheckpointError
from drift.models._base.guard import Part
from drift.models._state import codec
from drift.models._store import built
from drift.models._store.check import check_calibration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.models._store.built import Guard

__all__ = ["Calibrated", "Guarded", "Portable", "Stored"]


class Stored(Part):
    """A model whose stored state has a format version."""

    #: Attributes that have another name in stored states.
    _stored_names: ClassVar[Mapping[str, str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        stored = self._stored_names
        state = {stored.get(name, name): value for name, value in self.__dict__.items()}
        return state | {"_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_format(f"this {type(self).__name__}", state.get("_format", FORMAT - 1))
        names = {stored: name for name, stored in self._stored_names.items()}
        self._set_attributes({n: value for n, value in state.items() if n != "_format"}, names)


class Guarded(Stored):
    """A model with a guard. The guard is not stored, and a copy gets a new one."""

    def __init__(self) -> None:
        super().__init__()
        self._guard: Guard = built.Guard()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_guard"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._guard = built.Guard()


class Calibrated(Stored):
    """A model with its own calibration, because no single store produces its scores."""

    def __init__(self) -> None:
        super().__init__()
        self._calibration = built.Calibration()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_calibration": self._calibration.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        check_calibration(state["_calibration"])
        self._calibration = built.Calibration(*state["_calibration"])


class Portable(Stored):
    """A model that can be written as bytes, without pickle."""

    def to_bytes(self) -> bytes:
        """Return the model's state in the format of checkpoints, without pickle.

        Returns
        -------
        bytes
            Equal for models that continue alike. They start with the format version and end with a
            checksum.

        Raises
        ------
        CheckpointError
            If it has a part of a class that is neither drift's nor registered with
            `drift.consumers.register`; the message names it.

        Examples
        --------
        >>> from drift.models import LBP
        >>> model = LBP(budget=10)
        >>> model.learn_one({"rain": 1.0}, True)
        >>> LBP.from_bytes(model.to_bytes()).predict_one({"rain": 2.0})
        True
        """
        return codec.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Build a model of this class from the bytes of its `to_bytes`.

        It has the parameters and errors of `drift.models.from_bytes`, which accepts any class. The
        bytes of another class raise CheckpointError.
        """
        model = codec.from_bytes(data)
        if not isinstance(model, cls):
            class_name = type(model).__name__
            raise CheckpointError(
                f"these are the bytes of {class_name}, not of {cls.__name__}: use "
                f"{class_name}.from_bytes"
            )
        return model
