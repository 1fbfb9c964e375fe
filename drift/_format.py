"""The format of what is stored, checkpoints and pickles of models: one number for both."""

from __future__ import annotations

from drift import __version__
from drift.errors import CheckpointError

__all__ = ["FORMAT", "check_format"]

#: The only one that is read so far; it rises when earlier versions could not read what is written.
FORMAT = 3


def check_format(what: str, found: int) -> None:
    """Refuse, with CheckpointError, what was written in another format.

    Parameters
    ----------
    what
        What it is, for the message.
    found
        Its version of the format.
    """
    if found == FORMAT:
        return
    remedy = "train a new model, from the data or, with another folder and group, from the topic"
    raise CheckpointError(
        f"{what} was written in version {found} of the format, and drift {__version__} reads "
        f"version {FORMAT}: install the drift that wrote it, or "
        f"{'a newer one' if found > FORMAT else remedy}"
    )
