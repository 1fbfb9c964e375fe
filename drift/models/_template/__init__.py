"""What every algorithm fills in: River's contract, one example, batches, labels, classes."""
