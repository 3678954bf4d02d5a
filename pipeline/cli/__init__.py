"""The command line: one command for each stage and user task, without logic.

Heavy imports are inside the commands, so that --help answers at once.
"""

from pipeline.cli import experiments, live, logs, stages, tasks, upkeep
from pipeline.cli.base import app
from pipeline.cli.ending import main
