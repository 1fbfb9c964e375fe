"""Workers in trouble, while there is a file: a codec that takes long, a partition that stalls."""

import math
import time
from pathlib import Path

from drift.cli import main
from drift.consumers import JsonCodec
from drift.consumers.client.consumer import GroupConsumer

__all__ = ["SlowCodec", "stalling"]


class SlowCodec(JsonCodec):
    """As drift's own, after so many seconds, while there is the file."""

    def __init__(self, file):
        super().__init__()
        self.file = Path(file)

    def decode(self, value, headers=()):
        if self.file.exists():
            time.sleep(float(self.file.read_text(encoding="utf-8")))
        return super().decode(value, headers)


def stalling(file):
    """The command line, with a broker that does not say where partitions end."""
    ended_at = GroupConsumer.ended_at
    GroupConsumer.ended_at = lambda self, place: (
        -math.inf if Path(file).exists() else ended_at(self, place)
    )
    main()
