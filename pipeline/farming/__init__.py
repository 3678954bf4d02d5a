"""Farming: several stages of DVC at the same time, each with its own `dvc repro --single-item` in this repository.

DVC releases its lock while a stage's command runs, so several can be started. The farm only decides when each stage
runs; DVC decides which stages are stale or restored, and writes dvc.lock.
"""
