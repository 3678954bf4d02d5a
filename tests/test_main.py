"""How `python -m pipeline` ends: without taking down modules, but after its threads and exit handlers."""

import os
import subprocess
import sys

from builders import REPOSITORY

COMMAND = """
import atexit, runpy, sys, threading, time
import pipeline.cli

class Kept:
    def __del__(self):
        print("taken down")

kept = Kept()

def main():
    atexit.register(print, "handler")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    {end}

pipeline.cli.main = main
runpy.run_module("pipeline", run_name="__main__")
"""


def ended(end: str, to: str = "") -> tuple[int, list[str], str]:
    """Run a command with this end, and return its code and output; `to`: where the shell redirects it."""
    words = ["sh", "-c", f'exec "$@" {to}', "sh", sys.executable, "-c", COMMAND.format(end=end)]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}  # so that some output is still to be written at the end
    done = subprocess.run(words, check=False, cwd=REPOSITORY, env=buffered, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_threads_and_handlers_come_first_and_nothing_is_taken_down() -> None:
    assert ended("sys.exit(3)") == (3, ["thread", "handler"], "")
    assert ended("sys.exit()") == (0, ["thread", "handler"], "")


def test_what_is_unforeseen_ends_as_python_ends_it() -> None:
    code, said, wrong = ended("raise RuntimeError('a fault')")
    assert (code, said) == (1, ["thread", "handler", "taken down"])
    assert wrong.endswith("RuntimeError: a fault\n")
    assert ended("sys.exit('some words')") == (1, ["thread", "handler", "taken down"], "some words\n")


def test_a_closed_output_is_none_to_write_to() -> None:
    assert ended("sys.exit(3)", ">&-") == (3, [], "")
    assert ended("sys.exit(3)", "2>&-") == (3, ["thread", "handler"], "")


def test_what_could_not_be_written_is_told() -> None:
    code, _, wrong = ended("sys.exit()", ">/dev/full")
    assert code == 120  # Python's own code if output cannot be written at its end
    assert "No space left on device" in wrong
    assert "_leave" not in wrong
