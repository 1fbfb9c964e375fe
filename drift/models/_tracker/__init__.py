"""The tracker's parts: its plan, the scale of its features, its mixture, and its core in numpy."""
