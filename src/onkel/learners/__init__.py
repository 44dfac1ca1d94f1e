"""Learners: the learning loop, and learners made of learners."""
