"""What a checkpoint and those who go on with it must agree on: settings, and which topic it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from drift.errors import CheckpointError, ConfigurationError
from drift.models._state import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.checkpoints.objects import AnyPath

__all__ = ["check_configuration", "check_identity"]


def check_configuration(path: AnyPath, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that was written under another configuration.

    Parameters
    ----------
    path
        Its file.
    before, now
        The two configurations.

    Raises
    ------
    ConfigurationError
        With a line for each difference.
    """
    before = _with_later(before, now)
    names = before.keys() | now.keys()
    lines = _differences(*({name: _text(of, name) for name in names} for of in (before, now)))
    if lines:
        raise ConfigurationError(
            "\n".join([f"{path}: written under another configuration", *lines])
            + "\nGo on with that of the checkpoint, or start with another folder and group"
        )


def check_identity(
    folder: AnyPath, topic: str, before: Mapping[str, str], now: Mapping[str, str]
) -> None:
    """Refuse another topic than was learnt, or another group, as far as is known.

    Parameters
    ----------
    folder
        The partition's.
    topic
        Its topic.
    before, now
        What tells the topic and the group from others, when it was learnt and now.

    Raises
    ------
    CheckpointError
        With a line for each difference.
    """
    lines = _differences({name: one for name, one in before.items() if name in now}, now)
    if [line.partition(":")[0].strip() for line in lines] == ["group"]:
        raise CheckpointError(
            "\n".join([f"{folder}: another group learns into it", *lines])
            + "\nTwo groups would overwrite each other's checkpoints: give each its own folder, or "
            f"go on with the other's model by drift checkpoint adopt {folder.parent}"
        )
    if lines:
        raise CheckpointError(
            "\n".join([f"{folder}: learnt from another {topic}", *lines])
            + "\nThe topic was made anew, or is on another cluster: start with another folder "
            f"and group, or go on with it by drift checkpoint adopt {folder.parent}"
        )


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"  {name}: {before[name]} in the checkpoint, {now[name]} now"
        for name in sorted(before)
        if before[name] != now[name]
    ]


def _with_later(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Add parameters that are younger than a checkpoint.

    A class that gets a parameter keeps, as an attribute of that name, the value that stands for
    what was before: for models that lack it, and here.
    """
    later = {}
    for name in now.keys() - before.keys():
        owner, _, parameter = name.rpartition(".")
        kind = kinds.known(str(before.get(owner)))
        if hasattr(kind, parameter):
            later[name] = getattr(kind, parameter)
    return {**before, **later}


def _text(configuration: Mapping[str, Any], name: str) -> str:
    """Return a text that is the same for equal values: 1 and 1.0 are, and 1 and true are not."""
    if name not in configuration:
        return "absent"
    value = json.loads(
        json.dumps(configuration[name]),
        parse_float=lambda text: int(number) if (number := float(text)).is_integer() else number,
    )
    return json.dumps(value, sort_keys=True)
