"""Forms that a batch of rows may have, and the loop over them."""

import numpy as np
import pandas as pd
from scipy import sparse


def loop(model, examples):
    predictions = []
    for x, y in examples:
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    return predictions


FORMS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[::-1, ::2][::-1],
    "other bytes": lambda X: X.astype(">f8"),
    "frozen": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "frame": pd.DataFrame,
    "frame of objects": lambda X: pd.DataFrame(X, dtype=object),
    "sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "dicts": lambda X: [dict(enumerate(row)) for row in X.tolist()],
}
