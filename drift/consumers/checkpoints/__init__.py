"""Models in files, together with the offsets that they have learnt up to."""

__all__: list[str] = []
