"""Workers of topics: speed, beside an older version, how long a checkpoint stops them, memory."""
