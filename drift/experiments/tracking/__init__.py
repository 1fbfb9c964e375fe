"""The tracking paper's experiment: budgeted models on streams whose target shifts."""

from drift.experiments.tracking.experiment import TRACKING_MODELS, default_budgets, track
from drift.experiments.tracking.results import TrackingResults
from drift.experiments.tracking.runs import tracking_run

__all__ = ["TRACKING_MODELS", "TrackingResults", "default_budgets", "track", "tracking_run"]
