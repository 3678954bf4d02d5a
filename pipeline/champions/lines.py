"""champions.yaml: a line for each scenario, in git, with the policy to use there and the verdict on it.

A policy is identified by its content. An agent's digest is DVC's md5 of models/<agent>/policy in dvc.lock, so the model
of an earlier commit can be found in DVC's cache. A heuristic's digest is that of its name and of the numbers tuned for
its scenario on validation jobsets. The line has these numbers, so that the heuristic can be run after they change.
Changing a line leaves the file's comments and the other lines unchanged.
"""

import hashlib
import io
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import Field, ValidationError
from ruamel.yaml import YAML

from pipeline.core.config import Frozen
from pipeline.core.config.parsing import parsed
from pipeline.core.config.records import first_error
from pipeline.errors import UserError

CHAMPIONS = Path("champions.yaml")
WIDE = 120  # characters of a line


class PolicyRef(Frozen):
    """A policy as champion of a scenario, with the verdict."""

    policy: str  # an agent or a heuristic
    digest: str  # of its model, or of its name and tuned numbers
    tuned: dict[str, float] = Field(default_factory=dict)  # numbers of a heuristic, chosen on validation
    verdict: str  # by which it became the champion


class Champion(PolicyRef):
    """The line of a scenario."""

    previous: PolicyRef | None = None  # the champion before it, for a rollback
    rolled_back: tuple[str, ...] = ()  # digests that are not promoted again

    @property
    def ref(self) -> PolicyRef:
        """Return the line without its history."""
        return PolicyRef(policy=self.policy, digest=self.digest, tuned=self.tuned, verdict=self.verdict)


def digest_of_tuned(policy: str, tuned: Mapping[str, float]) -> str:
    """Return the digest of a heuristic's name and of its numbers to six digits, the stored precision.

    >>> digest_of_tuned("hold", {"hold": 10.0}) == digest_of_tuned("hold", {"hold": 10.0000001})
    True
    """
    numbers = {name: f"{value:.6g}" for name, value in tuned.items()}
    return hashlib.md5(json.dumps([policy, numbers], sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def tuned_of(policy: str, knobs: Mapping[str, float], heuristics: Collection[str]) -> dict[str, float]:
    """Return the tuned numbers of a scenario that a heuristic uses.

    A number belongs to the heuristic with the longest name that its own name begins with, otherwise to all of them.

    >>> tuned_of("hold", {"hold": 10.0, "hold_until": 50.0, "part_0": 0.5}, ["hold", "hold_until", "sjf"])
    {'hold': 10.0, 'part_0': 0.5}
    """

    def owner(name: str) -> str:
        return max((one for one in heuristics if name == one or name.startswith(f"{one}_")), key=len, default=policy)

    return {name: value for name, value in knobs.items() if owner(name) == policy}


def champions_in(text: str) -> dict[str, Champion]:
    """Return the lines of champions.yaml by scenario; UserError if it or a line is invalid."""
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
    """Return champions.yaml with another line for one scenario; UserError if that would change another line."""
    yaml, stream = YAML(), io.StringIO()
    yaml.width = WIDE
    yaml.dump({scenario: line.model_dump(mode="json", exclude_defaults=True)}, stream)
    rows = text.splitlines()
    first = next((k for k, row in enumerate(rows) if row.startswith(f"{scenario}:")), None)
    if first is None:
        found = "\n".join([*rows, stream.getvalue()])
    else:
        after = next((k for k in range(first + 1, len(rows)) if rows[k][:1] not in ("", " ", "#")), len(rows))
        while not rows[after - 1].strip() or rows[after - 1].startswith("#"):  # comments above the next line
            after -= 1
        found = "\n".join([*rows[:first], stream.getvalue().rstrip(), *rows[after:]]) + "\n"
    before = champions_in(text)
    if champions_in(found) != {**before, scenario: line}:
        raise UserError(f"{CHAMPIONS}: {scenario}: cannot be moved without another change: write it as '{scenario}:'")
    return found


def promoted(line: Champion | None, champion: PolicyRef) -> Champion:
    """Return the line after a promotion: the new champion and the one before."""
    previous, rolled_back = (line.ref, line.rolled_back) if line else (None, ())
    return Champion(**champion.model_dump(), previous=previous, rolled_back=rolled_back)


def rolled_back(line: Champion, scenario: str) -> Champion:
    """Return the line with the previous champion; the present one is not promoted again. UserError if none is known."""
    if line.previous is None:
        where = f"{CHAMPIONS}: {scenario}"
        raise UserError(f"{where}: the line holds no earlier champion; 'git log -p {CHAMPIONS}' shows all there were")
    gone = dict.fromkeys([*line.rolled_back, line.digest])
    return Champion(**line.previous.model_dump(), rolled_back=tuple(gone))
