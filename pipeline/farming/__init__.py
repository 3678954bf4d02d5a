"""Farming: several stages of DVC at the same time, each with its own `dvc repro --single-item` in this repository.

DVC releases its lock while a stage's command runs, so several can be started. Only order and time are decided here;
DVC decides which stages are stale or restored, and writes dvc.lock.
"""
