"""Farming: several stages of DVC at the same time, each a `dvc repro --single-item` of its own in this repository.

DVC lets its lock go while a stage's command runs, and so leaves it to others to start several: who starts which, and
when, is all that is done here. What is stale, what is restored and what is written into dvc.lock, DVC decides.
"""
