"""The command line: one command per stage and per user task; no logic.

Heavy imports stand inside the commands, so that --help answers at once.
"""

from pipeline.cli import benchmark, champions, farm, importing, logs, reference, serving, stages, steering, tasks
from pipeline.cli.base import app
from pipeline.cli.ending import main
