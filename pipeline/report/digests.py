"""What the page's numbers were made of, by digest: the outputs of dvc.lock, and the cards of models."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report.changes import NONE, flat
from pipeline.report.page import Digest

WORDS = ("digest", "sha", "md5")  # that name a digest on a card


def digests(lock: Mapping[str, Any]) -> list[Digest]:
    """Return every output of a dvc.lock."""
    stages = (lock.get("stages") or {}).values()
    outs = [out for stage in stages for out in stage.get("outs", [])]
    return [Digest(out["path"], str(out.get("md5", NONE)), f"{out.get('size', 0):,}".replace(",", " ")) for out in outs]


def cards(written: Mapping[str, bytes]) -> list[Digest]:
    """Return the digests that the cards of models name, by the folder of the model."""
    return [digest for folder, card in written.items() for digest in _named(folder, card)]


def _named(folder: str, card: bytes) -> Iterator[Digest]:
    try:
        leaves = flat(json.loads(card))
    except ValueError:
        return
    for place, value in leaves.items():
        if any(word in place.lower() for word in WORDS):
            yield Digest(f"{folder}: {place}", value, "")
