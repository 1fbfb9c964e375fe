"""What a checkpoint's header says of the shadow in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import written
from drift.consumers.checkpoints.rollback import when

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["promotion_line", "shadow_line"]


def shadow_line(header: Mapping[str, Any]) -> str:
    """Return how the shadow does beside the model; nothing where there is none."""
    from drift.consumers.shadow import Shadow

    if "shadow" not in header:
        return ""
    now = Shadow.restore(header["shadow"]["state"], None).values()
    name, count = header["shadow"]["model"], now["shadow_examples"]
    if not count:
        return f"{name}, not compared yet"
    errors = [now[f"{which}_mistakes"] / count for which in ("shadow", "shadow_model")]
    return (
        f"{name}, {count:,} compared, error {errors[0]:.2%} against {errors[1]:.2%}, "
        f"e {now['shadow_e_value']:.3g} that it errs less, {now['shadow_model_e_value']:.3g} more"
    )


def promotion_line(one: Mapping[str, Any]) -> str:
    """Return what a promotion was."""
    promoted, replaced = (written(one[which], "model") for which in ("promoted", "replaced"))
    return (
        f"{one['number']} {when(one)} by {one['by']}, "
        f"e {one['e_value']:.3g} of {one['compared']:,} compared, after {one['examples']:,} "
        f"examples: {promoted or 'the shadow'}; before, {replaced or 'the model'}"
    )
