"""The column store under every model, with its supports, its guard and its checks."""
