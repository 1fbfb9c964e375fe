"""Models as bytes: what checkpoints hold, and `to_bytes` gives."""

__all__: list[str] = []
