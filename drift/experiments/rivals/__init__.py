"""What drift's models are compared with, beyond River's own classes.

=============  =========================================================================
``moa``        MOA's classifiers, which need CapyMOA and Java.
``retrained``  scikit-learn's gradient boosting, trained anew on the latest rows.
``resets``     Any model, started afresh where ADWIN finds a change.
``batch_svm``  The support vector machine of the papers, trained on all examples at once.
=============  =========================================================================

The arena's list, with River's models, is `drift.experiments.arena.models.MODELS`.
"""

from drift.experiments.rivals.batch_svm import BatchSVM
from drift.experiments.rivals.moa import MOA
from drift.experiments.rivals.resets import resetting
from drift.experiments.rivals.retrained import Retrained

__all__ = ["MOA", "BatchSVM", "Retrained", "resetting"]
