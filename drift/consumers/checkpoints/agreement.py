"""What a checkpoint and its worker must agree on: settings, and the identity of the topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from drift.errors import CheckpointError, ConfigurationError
from drift.models._state import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.checkpoints.objects import AnyPath

__all__ = [
    "advice",
    "agree",
    "check_configuration",
    "check_identity",
    "part",
    "swapped",
    "without",
    "written",
]

#: Of a configuration, what is the model's, the second model's beside it, and the codec's.
_MODEL, _SHADOW, _CODEC = "model", "shadow", "codec"


def check_configuration(
    path: AnyPath, before: Mapping[str, Any], now: Mapping[str, Any], *, follows: bool = False
) -> None:
    """Refuse a checkpoint that was written under another configuration.

    Parameters
    ----------
    path
        Its file.
    before, now
        The two configurations.
    follows
        Whether it is a replica that reads it, and not a worker, which may decide to change it.

    Raises
    ------
    ConfigurationError
        With a line for each difference.
    """
    before = _with_later(before, now)
    names = before.keys() | now.keys()
    lines = _differences(*({name: _text(of, name) for name in names} for of in (before, now)))
    if lines:
        remedy = "Use the checkpoint's, or start with another folder and group"
        if follows:
            remedy = "Use the checkpoint's, which the worker's file has"
        elif not _same(part(before, _CODEC), part(now, _CODEC)):
            remedy += (
                ". Where messages are read in another way from now on, accept that by drift "
                f"checkpoint adopt {path.parent} --codec"
            )
        raise ConfigurationError(
            "\n".join([f"{path}: written under another configuration", *lines, remedy])
        )


def agree(
    path: AnyPath,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    replaced: Mapping[str, Any] | None = None,
    *,
    follows: bool = False,
) -> tuple[Mapping[str, Any], bool]:
    """Return the configuration to continue with, and whether its shadow is the checkpoint's.

    A shadow may be another one, or none. What is configured may be as before a promotion: where it
    names the model that was replaced, the promoted one continues; where its shadow is the promoted
    one, the replaced one is the shadow. Where either names no codec, it may be any.

    Parameters
    ----------
    path
        The checkpoint's file.
    before, now
        The two configurations.
    replaced
        The model that the last promotion replaced, as `part` has it; None where there was none.
    follows
        As of `check_configuration`.

    Raises
    ------
    ConfigurationError
        As `check_configuration` does.

    Examples
    --------
    >>> agree("file", {"model": "RBP", "shadow": "LBP"}, {"model": "RBP", "shadow": "Forgetron"})
    ({'model': 'RBP', 'shadow': 'Forgetron'}, False)
    >>> now = {"model": "RBP", "shadow": "LBP"}
    >>> agree("file", {"model": "LBP", "shadow": "RBP"}, now, replaced={"model": "RBP"})
    ({'model': 'LBP', 'shadow': 'RBP'}, True)
    """
    model, configured = part(before, _MODEL), part(now, _MODEL)
    if replaced is not None:
        is_old = _same(replaced, configured) and not _same(model, configured)
        has_old = is_old or _same(part(before, _SHADOW), replaced)
        if is_old:
            now = without(now, _MODEL) | model
        if has_old and _same(model, part(now, _SHADOW)):
            now = without(now, _SHADOW) | _as_shadow(replaced)
    if not (part(before, _CODEC) and part(now, _CODEC)):
        now = without(now, _CODEC) | {n: v for n, v in before.items() if _of(n) == _CODEC}
    check_configuration(path, without(before, _SHADOW), without(now, _SHADOW), follows=follows)
    return now, _same(*(part(of, _SHADOW) for of in (before, now)))


def part(configuration: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return what a configuration has of the "model" or of the "shadow", as of a model.

    Examples
    --------
    >>> part({"topic": "news", "model": "RBP", "shadow": "LBP", "shadow.budget": 9}, "shadow")
    {'model': 'LBP', 'model.budget': 9}
    """
    return {
        _MODEL + name.removeprefix(of): value
        for name, value in configuration.items()
        if _of(name) == of
    }


def swapped(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose model and shadow have changed places.

    Examples
    --------
    >>> swapped({"topic": "news", "model": "RBP", "shadow": "LBP", "shadow.budget": 9})
    {'topic': 'news', 'model': 'LBP', 'model.budget': 9, 'shadow': 'RBP'}
    """
    others = without(without(configuration, _MODEL), _SHADOW)
    return others | part(configuration, _SHADOW) | _as_shadow(part(configuration, _MODEL))


def advice(configuration: Mapping[str, Any]) -> str:
    """Return the tables of a file for a configuration; nothing where that is unknown.

    Examples
    --------
    >>> advice({"model": "RBP", "shadow": "LBP", "shadow.budget": 9})
    'write [model] class = "RBP"; [models.shadow] class = "LBP", budget = 9, or leave that out'
    """
    model, shadow = (written(configuration, of) for of in (_MODEL, _SHADOW))
    more = f"; [models.shadow] {shadow}, or leave that out"
    return f"write [model] {model}{more * bool(shadow)}" if model else ""


def written(configuration: Mapping[str, Any], of: str) -> str:
    """Return what a TOML file has in the table of a model, between commas.

    Examples
    --------
    >>> written({"model": "RBP", "model.budget": 9, "model.kernel": "RBF"}, "model")
    'class = "RBP", budget = 9, kernel.class = "RBF"'
    """
    entries = {name.removeprefix(_MODEL): value for name, value in part(configuration, of).items()}
    kinds = {"", ".kernel"} | {name.rpartition(".")[0] for name in entries}
    return ", ".join(
        f"{name.removeprefix('.')}{('.class' if name else 'class') * (name in kinds)} = "
        + json.dumps(value)
        for name, value in entries.items()
        if value is not None  # as TOML has none
    )


def _of(name: str) -> str:
    """Return whose entry a name is: "model", "codec", ..."""
    return name.partition(".")[0]


def _as_shadow(model: Mapping[str, Any]) -> dict[str, Any]:
    return {_SHADOW + name.removeprefix(_MODEL): value for name, value in model.items()}


def without(configuration: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return a configuration without what it has of the "model", the "shadow" or the "codec"."""
    return {name: value for name, value in configuration.items() if _of(name) != of}


def _same(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two models are configured alike."""
    before = _with_later(before, now)
    return before.keys() == now.keys() and all(_text(before, n) == _text(now, n) for n in now)


def check_identity(  # noqa: PLR0913
    folder: AnyPath,
    topic: str,
    before: Mapping[str, str],
    now: Mapping[str, str],
    *,
    labels: str | None = None,
    follows: bool = False,
) -> None:
    """Refuse another topic than was learnt, or another group, as far as is known.

    Parameters
    ----------
    folder
        The partition's.
    topic
        Its topic.
    before, now
        The identity of topic and group, when it was learnt and now.
    labels
        The topic of the labels; None where they have none of their own.
    follows
        As of `check_configuration`.

    Raises
    ------
    CheckpointError
        With a line for each difference.
    """
    lines = _differences({name: value for name, value in before.items() if name in now}, now)
    if not lines:
        return
    changed = [line.partition(":")[0].strip() for line in lines]
    adopt = f"drift checkpoint adopt {folder.parent}"
    if changed == ["group"]:
        what = "another group learns into it"
        remedy = (
            "Two groups would overwrite each other's checkpoints: give each its own folder, or "
            f"continue the other's model by {adopt} --topic {topic}"
        )
        if follows:
            remedy = "Give the group of the checkpoint, or the folder of this one's workers"
    else:
        is_same_cluster = "cluster_id" in now and before.get("cluster_id") == now["cluster_id"]
        ids = {"topic_id": topic, "labels_topic_id": labels}
        others = [name for of, name in ids.items() if of in changed and name]
        others = others or [name for name in ids.values() if name]  # of a cluster without ids
        what = f"learnt from another {' and '.join(others)}"
        cause = "The topic was recreated" + ", or is on another cluster" * (not is_same_cluster)
        remedy = f"{cause}: start with another folder and group, or have all of it be learnt by "
        remedy += " and ".join(f"{adopt} --topic {name} --offset 0" for name in others)
        if not is_same_cluster:
            goes_on = "its log goes on" if labels is None else "the logs of both topics go on"
            remedy += (
                f". If {goes_on} there at the old offsets, accept it by {adopt} --topic {topic}"
            )
        if follows:
            remedy = f"{cause}: the workers stop likewise, so serve again once they learn"
            if not is_same_cluster:
                remedy += ". Or give the broker of the workers, if that is another one"
    raise CheckpointError("\n".join([f"{folder}: {what}", *lines, remedy]))


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
        kind = kinds.drift_class(str(before.get(owner)))
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
