"""What others have published on streams that the arena has, too, as far as their text was read."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PUBLISHED", "SOURCES", "Published"]


class Published(NamedTuple):
    """The smallest prequential error of a source, in percent: labels at once, the whole stream."""

    rows: int
    error: float
    model: str
    #: In `SOURCES`.
    source: str


#: Where the text is, by source.
SOURCES = {
    "SAMLB": "https://github.com/TechyNilesh/samlb/blob/"
    "25ba0c7ef7f1ae9ede0e2ab57a6b694d9ba1b716/benchmark_results/classification_v06.csv",
    "River": "https://github.com/online-ml/river/tree/"
    "746866574845c746e9e61f071c1bd2f46ebcb20d/docs/benchmarks",
}
#: By stream; None: none was found whose text could be read.
PUBLISHED: dict[str, Published | None] = {
    "elecNormNew": Published(45_312, 8.15, "ASML", "SAMLB"),
    "covertype": Published(100_000, 6.09, "AutoClass", "SAMLB"),
    "airlines": Published(539_383, 31.94, "StreamingAutoGluon", "SAMLB"),
    "nomao": Published(34_465, 2.09, "StreamingAutoGluon", "SAMLB"),
    "gas-drift": None,
    "phishing": Published(1_250, 8.65, "random patches", "River"),
    "bananas": Published(5_300, 11.06, "Mondrian forest", "River"),
    "segments": Published(2_310, 9.83, "Mondrian forest", "River"),
    "insects abrupt": Published(52_848, 24.53, "stacking", "River"),
    "keystroke": Published(20_400, 0.25, "last class", "River"),
}
