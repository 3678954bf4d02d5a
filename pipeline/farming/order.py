"""The order of stages in dvc.lock: that in which `dvc repro` would have written them, whoever ended first.

DVC keeps the place of a stage that dvc.lock has, and puts a new one behind the others.
"""

import re
from collections.abc import Iterator, Sequence

HEAD = re.compile(r"^  ([^ ].*):$")  # of a stage, as DVC writes it


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
