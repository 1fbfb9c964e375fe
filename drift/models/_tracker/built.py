"""The compiled core, or the reference where it was not built."""

import warnings

from drift.models._store import supports as stores

__all__ = ["TrackerCore", "compiled"]

#: Whether all of drift's compiled extensions are in use.
compiled: bool = stores.compiled

try:
    if not stores.compiled:
        raise ImportError  # noqa: TRY301 - `stores` has warned
    from drift.models._tracker import core

    stores.check_version(core)
    from drift.models._tracker.core import TrackerCore
except ImportError:
    from drift.models._tracker.reference_core import TrackerCore  # type: ignore[assignment]

    if compiled and stores.is_main_process():
        warnings.warn(
            "drift.models runs without its compiled extension for the Tracker, which takes some "
            "200 times as long. Install a C compiler, and then drift again, in its source folder: "
            "pip install -e .",
            RuntimeWarning,
            stacklevel=2,
        )
    compiled = False
