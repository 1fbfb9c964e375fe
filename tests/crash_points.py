"""The points of `drift.consumers.crash_points`, in the order in which they are reached."""

__all__ = ["CHECKPOINT_POINTS", "CLAIM_POINTS", "MODELS_POINTS", "ROLLBACK_POINTS"]

#: The steps of `CheckpointFolder.claim`, in their order.
CLAIM_POINTS = ("claim.checked", "claim.created", "claim.loaded", "claim.cleaned")

#: The steps of `CheckpointFolder.save`, in their order.
CHECKPOINT_POINTS = (
    "checkpoint.begun",
    "checkpoint.encoded",
    "checkpoint.order-half-written",
    "checkpoint.half-written",
    "checkpoint.written",
    "checkpoint.synced",
    "checkpoint.checked",
    "checkpoint.renamed",
    "checkpoint.recorded",
    "checkpoint.pruned",
)

#: The steps of a rollback, about those of a checkpoint.
ROLLBACK_POINTS = (
    "rollback.checked",
    "rollback.claimed",
    *CHECKPOINT_POINTS[2:8],
    "rewrite.written",
)

#: The steps of `drift.consumers.checkpoints.keyed_store.ModelStore`: of a claim, of a write, of the
#: end of a version.
MODELS_POINTS = ("models.claimed", "models.half-written", "models.written", "models.saved")
