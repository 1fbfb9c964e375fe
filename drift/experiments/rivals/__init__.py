"""What drift's models are compared with, beyond River's own classes.

=============  =========================================================================
``moa``        MOA's classifiers, which need CapyMOA and Java.
``retrained``  scikit-learn's gradient boosting, trained anew on the latest rows.
``resets``     Any model, started afresh where ADWIN finds a change.
``batch_svm``  The support vector machine of the papers, trained on all examples at once.
=============  =========================================================================

A rival joins the arena by a line in `drift.experiments.arena.models.MODELS`, where River's models
are, and `drift compare` by a short name in `drift/cli/compare.py`.
"""

from drift.experiments.rivals.batch_svm import BatchSVM
from drift.experiments.rivals.moa import MOA
from drift.experiments.rivals.resets import resetting
from drift.experiments.rivals.retrained import Retrained

__all__ = ["MOA", "BatchSVM", "Retrained", "resetting"]
