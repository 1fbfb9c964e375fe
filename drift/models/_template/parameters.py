"""Parameters that cannot be changed once a model is built, and clones, which may have others."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Self

from river import base

from drift.errors import ParameterError

__all__ = ["Cloned", "fix_parameters"]


class Cloned(base.Base):
    """What is cloned as River's classes are, but does not mix what was learnt with new parameters.

    River's clone would do that, and copy apart what attributes share.
    """

    def clone(
        self,
        new_params: dict[str, Any] | None = None,
        include_attributes: bool = False,  # noqa: FBT001, FBT002 - River's signature
    ) -> Self:
        """Return an untrained model with the same or other parameters.

        Parameters
        ----------
        new_params
            Parameters to change.
        include_attributes
            Whether to copy the trained state, too.

        Raises
        ------
        ParameterError
            If both are given: a trained state belongs to its parameters.
        """
        if not include_attributes:
            return super().clone(new_params)
        if new_params:
            raise ParameterError(
                "a clone that keeps what was learnt keeps its parameters: give either new ones, "
                f"here {new_params!r:.80}, or include_attributes"
            )
        return copy.deepcopy(self)


class _Fixed:
    """A parameter that is set once, because the objects built from it would not change with it.

    It has no `__get__`, so that reading the parameter is reading the model's own attribute.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set__(self, model: Any, value: object) -> None:
        attributes = vars(model)
        if self._name in attributes and attributes[self._name] is not value:
            class_name = type(model).__name__
            raise ParameterError(
                f"{self._name} of a {class_name} is fixed once the model is built: make another "
                f"one, {class_name}({self._name}={value!r:.80}) or "
                f"model.clone({{{self._name!r}: ...}})"
            )
        attributes[self._name] = value


class _FixedOrDefault(_Fixed):
    """A `_Fixed` with a default, for states of earlier versions, which lack the parameter."""

    def __init__(self, name: str, default: object) -> None:
        super().__init__(name)
        self._default = default

    def __get__(self, model: Any, owner: type) -> object:
        return self._default if model is None else vars(model).get(self._name, self._default)


def fix_parameters(cls: type) -> None:
    """Fix the parameters of a model's constructor, which are stored under their names.

    The value of a class attribute of that name is the default where a state lacks the parameter.
    """
    for name in list(inspect.signature(cls).parameters):
        if not hasattr(cls, name):
            setattr(cls, name, _Fixed(name))
        elif not hasattr(inspect.getattr_static(cls, name), "__set__"):  # not fixed by a base class
            setattr(cls, name, _FixedOrDefault(name, getattr(cls, name)))
