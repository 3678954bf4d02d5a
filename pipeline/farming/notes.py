"""What a farm leaves for the next one, under .dvc/tmp: who is at work, how long stages took, dvc.lock and its order.

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

from pipeline.config.parsing import parsed
from pipeline.errors import UserError
from pipeline.storage.files import hold, write

FOLDER = Path(".dvc/tmp/farm")
KEPT = FOLDER / "dvc.lock"  # as it was when a stage last ended: DVC writes in place, and a kill may cut what it writes
HEAD = re.compile(r"^  ([^ ].*):$")  # of a stage, as DVC writes it


class Notes(BaseModel):
    """What is kept; lost, it costs nothing but an estimate and the order of new stages in dvc.lock."""

    seconds: dict[str, float] = {}  # that each stage took when it last ran
    order: list[str] | None = None  # of dvc.lock, before a farm that has not come to its end

    @classmethod
    def read(cls) -> "Notes":
        """Return what the last farm left; nothing where there is none, or it cannot be read."""
        try:
            return cls.model_validate_json((FOLDER / "notes.json").read_bytes())
        except (OSError, ValidationError):
            return cls()

    def write(self) -> None:
        """Keep it."""
        write(FOLDER / "notes.json", json.dumps(self.model_dump(), indent=1, sort_keys=True).encode())


def keep(lock: bytes) -> None:
    """Keep dvc.lock as it is now."""
    write(KEPT, lock)


def cut(lock: bytes) -> bytes | None:
    """Return what was kept of a dvc.lock that a kill has cut; nothing if it is whole, or nothing was kept."""
    try:
        kept = KEPT.read_bytes()
    except OSError:
        return None
    lost = set(stages_of(kept.decode())) - set(stages_of(lock.decode(errors="replace")))
    return kept if lost or not _reads(lock) else None


@contextmanager
def alone() -> Iterator[TextIO]:
    """Be the only farm of this repository; gives the file whose lock says so, which its stages are to hold, too."""
    if not Path(".dvc").is_dir() or not Path("dvc.yaml").is_file():
        raise UserError("farm: expected dvc.yaml and .dvc here; run this at the repository's root")
    with hold(FOLDER / "lock", "farm") as held:
        yield held


def _reads(lock: bytes) -> bool:
    with suppress(UserError, UnicodeDecodeError):
        parsed(lock.decode(), "dvc.lock", of_dvc=True)
        return lock.endswith(b"\n")
    return False


def stages_of(lock: str) -> list[str]:
    """Return the stages of a dvc.lock in their order."""
    return [name for name, _ in _blocks(lock) if name]


def ordered(lock: str, before: Sequence[str], plan: Sequence[str]) -> str:
    r"""Return a dvc.lock with its stages in the order that `dvc repro` gives them; no line is changed.

    Args:
        lock: its text.
        before: the stages that it had, in order.
        plan: the stages as `dvc repro` goes through them.

    >>> ordered("schema: '2.0'\nstages:\n  b:\n    cmd: b\n  a:\n    cmd: a\n", [], ["a", "b"])
    "schema: '2.0'\nstages:\n  a:\n    cmd: a\n  b:\n    cmd: b\n"
    """
    place = {name: at for at, name in enumerate(dict.fromkeys([*before, *plan]))}
    blocks = list(_blocks(lock))
    return "".join(
        text for _, text in sorted(blocks, key=lambda block: place.get(block[0], len(place)) if block[0] else -1)
    )


def _blocks(lock: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of each stage under its name, and under none what stands before the first."""
    name, lines = "", list[str]()
    for line in lock.splitlines(keepends=True):
        if head := HEAD.match(line):
            yield name, "".join(lines)
            name, lines = head[1].strip("'\""), []
        lines.append(line)
    yield name, "".join(lines)
