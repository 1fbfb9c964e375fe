"""kafka-python as drift uses it: nothing outside of this package imports it."""

__all__: list[str] = []
