"""Streams whose target shifts, and readers of the data they are made of.

Names load on first use: River's data sets alone take seconds to import.

Examples
--------
>>> from drift.streams import NEWSWIRE_TARGETS, ShiftingStream, newswire
>>> stream = ShiftingStream(newswire(300), NEWSWIRE_TARGETS)
>>> stream.chunk_size, stream.shifts
(75, (75, 150, 225))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.streams.catalog import fetch_openml, load, load_split, segments
    from drift.streams.documents import Documents
    from drift.streams.electricity import read_elec
    from drift.streams.handwriting import letter, mnist, usps
    from drift.streams.libsvm import read_libsvm
    from drift.streams.lyrl2004 import read_lyrl2004
    from drift.streams.rcv1v2 import RCV1_TARGETS, fetch_rcv1, rcv1
    from drift.streams.reuters import read_reuters21578
    from drift.streams.shifting import ShiftingStream, tracking_groups
    from drift.streams.simulator import NEWSWIRE_TARGETS, newswire
    from drift.streams.stream import Drift, Stream
    from drift.streams.synthetic import gaussians
    from drift.streams.tables import read_stream

__all__ = [
    "NEWSWIRE_TARGETS",
    "RCV1_TARGETS",
    "Documents",
    "Drift",
    "ShiftingStream",
    "Stream",
    "fetch_openml",
    "fetch_rcv1",
    "gaussians",
    "letter",
    "load",
    "load_split",
    "mnist",
    "newswire",
    "rcv1",
    "read_elec",
    "read_libsvm",
    "read_lyrl2004",
    "read_reuters21578",
    "read_stream",
    "segments",
    "tracking_groups",
    "usps",
]

_MODULES = {
    "catalog": ("fetch_openml", "load", "load_split", "segments"),
    "documents": ("Documents",),
    "electricity": ("read_elec",),
    "handwriting": ("letter", "mnist", "usps"),
    "libsvm": ("read_libsvm",),
    "lyrl2004": ("read_lyrl2004",),
    "rcv1v2": ("RCV1_TARGETS", "fetch_rcv1", "rcv1"),
    "reuters": ("read_reuters21578",),
    "shifting": ("ShiftingStream", "tracking_groups"),
    # No module is called as one of its functions: importing it would hide the function here.
    "simulator": ("NEWSWIRE_TARGETS", "newswire"),
    "stream": ("Drift", "Stream"),
    "synthetic": ("gaussians",),
    "tables": ("read_stream",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
