"""Batches for cores that learn one example at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.models._store.rows import Rows
    from drift.types import Label

__all__ = ["RowByRow"]


class RowByRow:
    """Core that has `classes`, and `predict` and `learn` for one example."""

    def learn_rows(
        self: Any, rows: Rows, predictions: list[Label], labels: list[Label] | None
    ) -> None:
        """Predict rows, and learn each then if there are labels.

        It begins with the row whose number is that of the predictions, and appends to them.
        """
        for i in range(len(predictions), len(rows)):
            x = rows.row(i)
            number = self.predict(x) if labels is None else self.learn(x, labels[i], 1.0)
            predictions.append(None if number < 0 else self.classes[number])
