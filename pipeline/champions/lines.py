"""champions.yaml: a line for each scenario, in git, that says which policy is to be used there and by which verdict.

A policy is meant by its content. The digest of an agent is DVC's of its models/<agent>/policy, as dvc.lock has it, so
that the model of an earlier commit is found in DVC's cache. A heuristic's is that of its name and of what validation
tuned for its scenario; these numbers stand in the line, so that it can be played when they are others. Moving a line
leaves the file's comments and the other lines as they are.
"""

import hashlib
import io
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import Field, ValidationError
from ruamel.yaml import YAML

from pipeline.config import Frozen
from pipeline.config.parsing import parsed
from pipeline.config.records import first_error
from pipeline.errors import UserError

CHAMPIONS = Path("champions.yaml")
WIDE = 120  # characters of a line


class Seat(Frozen):
    """A policy as champion of a scenario, and why."""

    policy: str  # an agent or a heuristic
    digest: str  # of its model, or of its name and tuned numbers
    tuned: dict[str, float] = Field(default_factory=dict)  # numbers of a heuristic, as validation chose them
    verdict: str  # by which it became the champion


class Champion(Seat):
    """The line of a scenario."""

    previous: Seat | None = None  # the champion before it, to go back to
    rolled_back: tuple[str, ...] = ()  # digests that are not promoted again

    @property
    def seat(self) -> Seat:
        """Return the line without what was before it."""
        return Seat(policy=self.policy, digest=self.digest, tuned=self.tuned, verdict=self.verdict)


def digest_of_tuned(policy: str, tuned: Mapping[str, float]) -> str:
    """Return the digest of a heuristic by its name and numbers, to six digits, as they are stored.

    >>> digest_of_tuned("hold", {"hold": 10.0}) == digest_of_tuned("hold", {"hold": 10.0000001})
    True
    """
    numbers = {name: f"{value:.6g}" for name, value in tuned.items()}
    return hashlib.md5(json.dumps([policy, numbers], sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def tuned_of(policy: str, knobs: Mapping[str, float], heuristics: Collection[str]) -> dict[str, float]:
    """Return those of a scenario's tuned numbers that a heuristic may play by.

    A number belongs to the heuristic whose name it begins with, the longest such; else it is of all of them.

    >>> tuned_of("hold", {"hold": 10.0, "hold_until": 50.0, "part_0": 0.5}, ["hold", "hold_until", "sjf"])
    {'hold': 10.0, 'part_0': 0.5}
    """

    def owner(name: str) -> str:
        return max((one for one in heuristics if name == one or name.startswith(f"{one}_")), key=len, default=policy)

    return {name: value for name, value in knobs.items() if owner(name) == policy}


def champions_in(text: str) -> dict[str, Champion]:
    """Return the lines of champions.yaml by scenario.

    Raises:
        UserError: it is not YAML, or a line is none.
    """
    raw = parsed(text, str(CHAMPIONS))
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise UserError(f"{CHAMPIONS}: expected a line for each scenario, found {str(raw)[:40]!r}")
    found = {}
    for scenario, row in raw.items():
        try:
            found[str(scenario)] = Champion.model_validate(row)
        except ValidationError as error:
            raise UserError(first_error(error, row, f"{CHAMPIONS}: {scenario}")) from error
    return found


def with_line(text: str, scenario: str, line: Champion) -> str:
    """Return champions.yaml with another line for one scenario; all outside of it keeps its bytes.

    Raises:
        UserError: the text is not valid, or would not be afterwards.
    """
    yaml, stream = YAML(), io.StringIO()
    yaml.width = WIDE
    yaml.dump({scenario: line.model_dump(mode="json", exclude_defaults=True)}, stream)
    rows = text.splitlines()
    first = next((k for k, row in enumerate(rows) if row.startswith(f"{scenario}:")), None)
    if first is None:
        found = "\n".join([*rows, stream.getvalue()])
    else:
        after = next((k for k in range(first + 1, len(rows)) if rows[k][:1] not in ("", " ", "#")), len(rows))
        while not rows[after - 1].strip() or rows[after - 1].startswith("#"):  # what stands above the next line
            after -= 1
        found = "\n".join([*rows[:first], stream.getvalue().rstrip(), *rows[after:]]) + "\n"
    before = champions_in(text)
    if champions_in(found) != {**before, scenario: line}:
        raise UserError(f"{CHAMPIONS}: {scenario}: cannot be moved without another change: write it as '{scenario}:'")
    return found


def promoted(line: Champion | None, seat: Seat) -> Champion:
    """Return the line behind a promotion: the new champion, and who was it before."""
    return Champion(
        **seat.model_dump(), previous=line.seat if line else None, rolled_back=line.rolled_back if line else ()
    )


def rolled_back(line: Champion, scenario: str) -> Champion:
    """Return the line with the champion before; the one that goes is not promoted again.

    Raises:
        UserError: the line does not hold an earlier one.
    """
    if line.previous is None:
        where = f"{CHAMPIONS}: {scenario}"
        raise UserError(f"{where}: the line holds no earlier champion; 'git log -p {CHAMPIONS}' shows all there were")
    gone = dict.fromkeys([*line.rolled_back, line.digest])
    return Champion(**line.previous.model_dump(), rolled_back=tuple(gone))
