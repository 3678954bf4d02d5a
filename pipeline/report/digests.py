"""What the page's numbers were made of, by digest: the outputs of dvc.lock, and the cards of models."""

import json
from collections.abc import Iterator, Mapping

from pipeline.report.changes import NONE, flat
from pipeline.report.page import Digest
from pipeline.storage.evidence import Lock

WORDS = ("digest", "sha", "md5")  # that name a digest on a card


def digests(lock: Lock) -> list[Digest]:
    """Return every output of a dvc.lock."""
    return [Digest(out.path, out.md5 or NONE, f"{out.size:,}".replace(",", " ")) for out in lock.outs]


def cards(written: Mapping[str, bytes]) -> list[Digest]:
    """Return the digests that the cards of models name, by the folder of the model."""
    return [digest for folder, card in written.items() for digest in _named(folder, card)]


def _named(folder: str, card: bytes) -> Iterator[Digest]:
    try:
        leaves = flat(json.loads(card))
    except (ValueError, RecursionError):
        return
    for place, value in leaves.items():
        if any(word in place.lower() for word in WORDS):
            yield Digest(f"{folder}: {place}", value, "")
