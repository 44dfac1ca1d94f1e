"""Learners: the learning loop, learners made of learners, and AdaRaker."""
