"""Notes of a farm for the next one, under .dvc/tmp: its lock, times of stages, dvc.lock and its order.

The order of stages in dvc.lock is that in which `dvc repro` would have written them, whichever ended first: DVC keeps
the place of a stage that dvc.lock has, and puts a new one after the others.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ValidationError

from pipeline.core.config.parsing import parsed
from pipeline.core.storage.files import hold, write
from pipeline.errors import UserError

FOLDER = Path(".dvc/tmp/farm")
KEPT = FOLDER / "dvc.lock"  # from the end of the last stage: DVC writes in place, and a kill may truncate it
HEAD = re.compile(r"^  ([^ ].*):$")  # the first line of a stage


class Notes(BaseModel):
    """Times and order; if lost, only an estimate and the order of new stages in dvc.lock are."""

    seconds: dict[str, float] = {}  # of the last run of each stage
    order: list[str] | None = None  # of dvc.lock, before a farm that has not ended

    @classmethod
    def read(cls) -> "Notes":
        """Return the notes of the last farm; empty if they are missing or unreadable."""
        try:
            return cls.model_validate_json((FOLDER / "notes.json").read_bytes())
        except (OSError, ValidationError):
            return cls()

    def write(self) -> None:
        """Write the notes."""
        write(FOLDER / "notes.json", json.dumps(self.model_dump(), indent=1, sort_keys=True).encode())


def keep(lock: bytes) -> None:
    """Store a copy of dvc.lock."""
    write(KEPT, lock)


def cut(lock: bytes) -> bytes | None:
    """Return the copy of a dvc.lock that a kill has truncated; None if it is complete or there is no copy."""
    try:
        kept = KEPT.read_bytes()
    except OSError:
        return None
    lost = set(stages_of(kept.decode())) - set(stages_of(lock.decode(errors="replace")))
    complete = False
    with suppress(UserError, UnicodeDecodeError):
        parsed(lock.decode(), "dvc.lock", of_dvc=True)
        complete = lock.endswith(b"\n")
    return kept if lost or not complete else None


@contextmanager
def exclusive() -> Iterator[TextIO]:
    """Be the only farm of this repository; give its lock file, which its stages must hold, too."""
    if not Path(".dvc").is_dir() or not Path("dvc.yaml").is_file():
        raise UserError("farm: expected dvc.yaml and .dvc here; run this at the repository's root")
    with hold(FOLDER / "lock", "farm") as held:
        yield held


def stages_of(lock: str) -> list[str]:
    """Return the stages of a dvc.lock in their order."""
    return [name for name, _ in _blocks(lock) if name]


def ordered(lock: str, before: Sequence[str], plan: Sequence[str]) -> str:
    r"""Return a dvc.lock with its stages in the order of `dvc repro`, without changing lines.

    Args:
        lock: its text.
        before: the stages that it had, in order.
        plan: the stages in the order of `dvc repro`.

    >>> ordered("schema: '2.0'\nstages:\n  b:\n    cmd: b\n  a:\n    cmd: a\n", [], ["a", "b"])
    "schema: '2.0'\nstages:\n  a:\n    cmd: a\n  b:\n    cmd: b\n"
    """
    place = {name: at for at, name in enumerate(dict.fromkeys([*before, *plan]))}
    blocks = list(_blocks(lock))
    return "".join(
        text for _, text in sorted(blocks, key=lambda block: place.get(block[0], len(place)) if block[0] else -1)
    )


def _blocks(lock: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of each stage with its name, and those before the first with none."""
    name, lines = "", list[str]()
    for line in lock.splitlines(keepends=True):
        if head := HEAD.match(line):
            yield name, "".join(lines)
            name, lines = head[1].strip("'\""), []
        lines.append(line)
    yield name, "".join(lines)
