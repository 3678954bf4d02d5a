"""Commands that end because the process that began them was killed."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY
from long_commands import LONG, ended, numbers

FARM = f"""
import fcntl
from pipeline.execution.commands import Commands
with open("lock", "w") as held, Commands([fcntl.fcntl(held, fcntl.F_DUPFD, 10)]) as commands:
    fcntl.flock(held, fcntl.LOCK_EX)
    commands.run({LONG!r}, print)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_lives_on_when_the_farm_is_killed(tmp_path: Path, sent: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    farm = subprocess.Popen([sys.executable, "-c", FARM], cwd=tmp_path, env=environment)
    pids = numbers(tmp_path)
    with (tmp_path / "lock").open() as lock:
        farm.send_signal(sent)
        farm.wait()
        with pytest.raises(BlockingIOError):  # its work holds what it had locked, until all of that has ended
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert ended(pids)
        fcntl.flock(lock, fcntl.LOCK_EX)
