"""What a file or frame of the corpus is, and what has to come of it."""

import io
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A file or frame, and what has to come of it.

    `examples` were computed by hand; numbers among them stand for floats. In `notes` and `refused`,
    ``" ... "`` stands for any text. There are as many notes as `notes` has.
    """

    about: str
    #: Of the file; empty: `content` makes a frame.
    file: str
    content: Any
    examples: list[tuple[dict[str, Any], Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: str = ""
    options: dict[str, Any] = field(default_factory=lambda: {"target": "y"})

    def source(self, folder):
        """Return what `read_stream` is given."""
        content = self.content(folder) if callable(self.content) else self.content
        if not self.file:
            return content
        path = folder / self.file
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def parquet(table, **options):
    """Return what a table of pyarrow is as a Parquet file."""
    from pyarrow import parquet as pq  # noqa: PLC0415

    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()
