"""Linear algebra over the supports: Gram matrices, projections, leave-one-out scores."""
