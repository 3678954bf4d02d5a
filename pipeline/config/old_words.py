"""Keys of params.yaml that have another name now: what to write in their place."""

from collections.abc import Mapping
from typing import Any

from pipeline.errors import UserError

RENAMED = {"steps": "pool", "events": "machines", "groups": "groups"}  # the words of `dynamics`, as it was called


def refuse_old_words(raw: Mapping[str, Any], where: str) -> None:
    """Refuse them.

    Raises:
        UserError: one line that says what to write.
    """
    rows, knobs = raw.get("scenarios"), raw.get("heuristics")
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        if isinstance(row, Mapping) and "dynamics" in row:
            word = RENAMED.get(str(row["dynamics"]), " | ".join(RENAMED.values()))
            said = f"this key is called 'problem' now: write 'problem: {word}'"
            raise UserError(f"{where}: scenarios.{name}.dynamics: {said}, here and in the rows of its agents")
    if isinstance(knobs, Mapping) and "mixes" in knobs:
        said = "knobs stand under their problem now: mixes under machines, the others under pool, none under groups: {}"
        raise UserError(f"{where}: heuristics: {said}")
