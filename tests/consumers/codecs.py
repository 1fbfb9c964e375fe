"""What tests ask of a codec."""

from dataclasses import fields

from drift.consumers import JsonCodec


def given(codec):
    """Return the options of a codec that have not their defaults, by name."""
    default = JsonCodec()
    names = [field.name for field in fields(codec)]
    return {k: getattr(codec, k) for k in names if getattr(codec, k) != getattr(default, k)}
