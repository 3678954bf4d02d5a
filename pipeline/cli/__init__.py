"""The command line: one command per stage and per user task; no logic.

Heavy imports stand inside the commands, so that --help answers at once.
"""

from pipeline.cli import benchmark, logs, stages, tasks
from pipeline.cli.base import app
from pipeline.cli.ending import main

__all__ = ["app", "benchmark", "logs", "main", "stages", "tasks"]
