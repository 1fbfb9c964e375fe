"""Rows of the arena's table "runs", from errors that a test gives."""


def rows(errors, delay=None):
    """Rows of models on streams; late, a quarter of the rows after the delay are mistakes."""
    return [
        {"stream": stream, "model": model, "seed": None, "delay": delay, "rows": 9}
        | {
            "status": "ok",
            "message": "",
            "unpredicted": 0,
            "error": error,
            "kappa": None,
            "log_loss": None,
        }
        | {"microseconds": 2.0, "memory": 10, "error_after_delay": None if delay is None else 0.25}
        for model, values in errors.items()
        for stream, error in values.items()
    ]
