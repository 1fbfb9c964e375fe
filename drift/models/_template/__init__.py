"""The template that every algorithm fills in: River's contract, batches, labels, classes."""
