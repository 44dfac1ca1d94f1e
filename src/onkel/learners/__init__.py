"""Learners: the loop, and learners made of learners."""
