"""Lists of nodes as Slurm writes them: `n[1-3,7],gpu01`.

>>> expanded("n[08-10,12],gpu1,r[1-2]c[1-2]")
['n08', 'n09', 'n10', 'n12', 'gpu1', 'r1c1', 'r1c2', 'r2c1', 'r2c2']
"""

import re
from collections.abc import Iterator
from itertools import product

from pipeline.steering.rows import OddError

MOST_NODES = 20_000  # of one list
PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]+\][^,\[\]]*)*")
PIECE = re.compile(r"\[([^\[\]]+)\]|([^\[\]]+)")
RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def expanded(text: str) -> list[str]:
    """Return the names of a list of nodes, in its order.

    Raises:
        OddError: it is none, or longer than any cluster's.
    """
    found: list[str] = []
    for part in _parts(text):
        pieces = [_numbers(inside, text) if inside else [plain] for inside, plain in PIECE.findall(part)]
        count = 1
        for piece in pieces:
            count *= len(piece)
        if len(found) + count > MOST_NODES:
            raise OddError(f"a list of more than {MOST_NODES} nodes")
        found += ["".join(names) for names in product(*pieces)]
    return found


def _parts(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = PART.match(text, at)
        if match is None or not match[0] or (match.end() < len(text) and text[match.end()] != ","):
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        yield match[0]
        at = match.end() + 1


def _numbers(inside: str, text: str) -> list[str]:
    found: list[str] = []
    for one in inside.split(","):
        match = RANGE.fullmatch(one)
        if match is None:
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST_NODES:
            raise OddError(f"expected a list of nodes, found {text[:60]!r}")
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return found
