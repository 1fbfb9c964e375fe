"""A codec whose messages take as long as a file says, for workers in trouble."""

import time
from pathlib import Path

from drift.consumers import JsonCodec

__all__ = ["SlowCodec"]


class SlowCodec(JsonCodec):
    """As drift's own, after so many seconds, while there is the file."""

    def __init__(self, file):
        super().__init__()
        self.file = Path(file)

    def decode(self, value, headers=()):
        if self.file.exists():
            time.sleep(float(self.file.read_text(encoding="utf-8")))
        return super().decode(value, headers)
