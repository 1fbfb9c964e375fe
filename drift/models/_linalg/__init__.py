"""Linear algebra over the supports: Gram matrices, projections, scores without one support."""
