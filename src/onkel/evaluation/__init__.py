"""Evaluation: learners along streams, compared, tuned and shown."""
