"""Learning from Kafka, each example exactly once."""
