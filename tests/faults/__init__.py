"""Workers on a real Kafka under seeded faults: ``python -m tests.faults --seed 0 --seconds 60``."""
