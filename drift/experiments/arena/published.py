"""What others have published on streams that the arena has, too."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PUBLISHED", "SOURCE", "Published"]


class Published(NamedTuple):
    """The smallest prequential error of River's benchmarks, in percent: labels at once."""

    rows: int
    error: float
    model: str


#: Where the text is.
SOURCE = (
    "https://github.com/online-ml/river/tree/"
    "746866574845c746e9e61f071c1bd2f46ebcb20d/docs/benchmarks"
)
#: By stream.
PUBLISHED = {
    "phishing": Published(1_250, 8.65, "random patches"),
    "bananas": Published(5_300, 11.06, "Mondrian forest"),
    "segments": Published(2_310, 9.83, "Mondrian forest"),
}
