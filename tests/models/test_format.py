"""A pickle in another format is refused by name, with what to do."""

import io
import pickle

import pytest

from drift import __version__
from drift._format import FORMAT
from drift.errors import CheckpointError
from drift.models import LBP, MODELS, Averaged, OneVsRest, StructuredProjectron, Tracker
from drift.models._template.state import Stored


def changed(model, change):
    """Pickle a model, with a change to the states of models in it."""

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            if not isinstance(value, Stored):
                return NotImplemented
            make, given, state, *_ = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
            change(state)
            return make, given, state

    file = io.BytesIO()
    Pickler(file).dump(model)
    return file.getvalue()


@pytest.mark.parametrize(
    "model",
    [
        *(kind() for kind in MODELS.values()),
        Tracker(3),
        Averaged(LBP(3)),
        OneVsRest(LBP(3)),
        StructuredProjectron(max, min),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_pickle_in_another_format_is_refused_with_the_remedy(model):
    kind = type(getattr(model, "model", model)).__name__  # of a wrapper, the model in it is first
    older = changed(model, lambda state: state.pop("_format"))
    expected = rf"this {kind} was written in version {FORMAT - 1} of .* {__version__} reads version"
    with pytest.raises(CheckpointError, match=f"{expected} {FORMAT}: .* train a new model"):
        pickle.loads(older)
    newer = changed(model, lambda state: state.update(_format=FORMAT + 1))
    with pytest.raises(CheckpointError, match=f"this {kind} was .* or a newer one"):
        pickle.loads(newer)
