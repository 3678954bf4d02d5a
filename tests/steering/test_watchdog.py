"""What a watchdog says where it cannot undo what its controller left."""

import os
import subprocess
import sys
from pathlib import Path

from pipeline.steering.ledger import lock_folder


def test_a_watchdog_that_cannot_read_the_ledger_says_so_and_fails(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    (tmp_path / "set.json").write_text("{")
    read, write = os.pipe()
    os.close(write)  # the controller is gone
    held = (read, lock.fileno(), os.dup(lock.fileno()))
    words = [sys.executable, "-m", "pipeline.steering.watchdog", str(tmp_path), str(os.getpid()), *map(str, held), "5"]
    done = subprocess.run(words, check=False, pass_fds=held, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("steer: the watchdog ends: ")
    assert "set.json: expected what a controller wrote" in done.stderr
