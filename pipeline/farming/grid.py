"""The grid of a sweep: keys of params.yaml with values, and seeds; one point for each combination."""

import difflib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pipeline.core.config import PARAMS_FILE, Params, check_params, raw_params
from pipeline.core.config.parsing import parsed
from pipeline.core.config.records import known_names
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.tracking.digests import md5_of

MOST = 1000  # points of a sweep
SEEDED = ("pretrain", "finetune")  # sections of an agent with their own seed
RANGE = re.compile(r"^(\d+)\.\.(\d+)$")
Values = Mapping[str, Json]  # by dotted key


@dataclass(frozen=True)
class Point:
    """One run of a sweep."""

    setting: str  # swept values without the seed, such as 'learning_rate=0.001', or ""
    seed: int | None
    values: Values

    @property
    def title(self) -> str:
        """Return the point's title for users."""
        return " ".join(filter(None, [self.setting, "" if self.seed is None else f"seed={self.seed}"]))

    def name(self, content: str) -> str:
        """Return the name of the point's experiment; `content` identifies the code and the other parameters.

        >>> Point("learning_rate=0.001", 2, {}).name("1f")
        'learning_rate-0.001-seed-2-4fb79d'
        """
        words = re.sub(r"[^A-Za-z0-9._]+", "-", self.title.replace("..", ".")).strip("-.")
        return f"{words}-{md5_of(json.dumps([content, self.values], sort_keys=True).encode())[:6]}"


def settings(words: Sequence[str]) -> dict[str, list[Json]]:
    """Return the values of each key given by --set.

    >>> settings(["a.b=0.1,0.2", "c=[1, 2],[3]", "d=yes"])
    {'a.b': [0.1, 0.2], 'c': [[1, 2], [3]], 'd': ['yes']}
    """
    found: dict[str, list[Json]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not (key and equals and text.strip()):
            raise UserError(f"farm: --set {word}: expected KEY=VALUE,VALUE, as recipes.ours.learning_rate=0.001,0.003")
        if key in found:
            raise UserError(f"farm: --set {key} is given twice; write all its values in one, with commas")
        try:
            values: list[Json] = parsed(f"[{text}]", word)
        except UserError as error:
            raise UserError(f"farm: --set {word}: expected values with commas, as YAML writes them") from error
        if any(isinstance(value, Mapping) for value in values):
            raise UserError(
                f"farm: --set {word}: expected numbers, words or lists; give the keys of a mapping one by one"
            )
        if twice := [value for value in values if values.count(value) > 1]:
            raise UserError(f"farm: --set {key}: {twice[0]} is given twice")
        found[key] = values
    return found


def seeds(text: str) -> list[int]:
    """Return the seeds of a range or list.

    >>> seeds("1..3"), seeds("2,5")
    ([1, 2, 3], [2, 5])
    """
    if found := RANGE.match(text.strip()):
        first, last = int(found[1]), int(found[2])
        if last < first:
            raise UserError(f"farm: --seeds {text}: an empty range; the first is above the last: write {last}..{first}")
        if last - first >= MOST:
            raise UserError(f"farm: --seeds {text}: {last - first + 1} seeds; at most {MOST}")
        return list(range(first, last + 1))
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UserError(f"farm: --seeds {text}: expected a range, as 1..5, or whole numbers with commas, as 1,2,7")
    if len(set(parts)) < len(parts):
        raise UserError(f"farm: --seeds {text}: a seed is given twice")
    return [int(part) for part in parts]


def agents_about(params: Params, keys: Iterable[str], named: Sequence[str]) -> list[str]:
    """Return the agents of a sweep: those named, else those whose own key, recipe or scenario changes."""
    for name in named:
        params.agent(name)
    found = set(named)
    for section, row in () if named else ((*key.split("."), "")[:2] for key in keys):
        found |= {
            name
            for name, agent in params.agents.items()
            if (section == "agents" and row in ("", name))
            or (section == "recipes" and agent.finetune.recipe == row)
            or (section == "scenarios" and agent.scenario == row)
        }
    return [name for name in params.agents if name in found]


def grid(swept: Mapping[str, Sequence[Json]], drawn: Sequence[int], agents: Sequence[str]) -> list[Point]:
    """Return all points: every setting with every seed `drawn` for `agents`; without seeds, those of params.yaml."""
    short = {key: key.rpartition(".")[2] for key in swept}
    labels = {key: name if list(short.values()).count(name) == 1 else key for key, name in short.items()}
    count = len(drawn or [0]) * math.prod(map(len, swept.values()))
    if count > MOST:
        raise UserError(f"farm: {count} points; at most {MOST} in a sweep")
    return [
        Point(
            " ".join(f"{labels[key]}={_text(value)}" for key, value in zip(swept, chosen, strict=True)),
            seed,
            dict(zip(swept, chosen, strict=True))
            | ({} if seed is None else {f"agents.{name}.{part}.seed": seed for name in agents for part in SEEDED}),
        )
        for chosen in itertools.product(*swept.values())
        for seed in drawn or (None,)
    ]


def checked(raw: Mapping[str, Any], point: Point) -> Params:
    """Return the parameters of a point: the text of params.yaml with the point's values."""
    rows: dict[str, Any] = deepcopy(dict(raw))
    for key, value in point.values.items():
        _rows_at(rows, key)[key.rpartition(".")[2]] = value
    try:
        return check_params(rows, str(PARAMS_FILE))
    except UserError as error:
        for key in point.values:
            if f"{key}: unknown key" in str(error):
                raise UserError(f"farm: --set {key}: no such key{_nearest(raw, key)}") from error
        raise UserError(f"farm: {point.title}: {error}") from error


def known_keys(path: Path) -> list[str]:
    """Return all dotted keys of params.yaml that have a value."""
    return list(_leaves(raw_params(path), ""))


def _rows_at(rows: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the mapping that a key is in."""
    at: Any = rows
    *way, _ = key.split(".")
    for place, word in enumerate(way):
        if word not in at:
            before = ".".join(way[:place]) or str(PARAMS_FILE)
            raise UserError(f"farm: --set {key}: {before} has no '{word}'; {known_names(map(str, at), word)}")
        if not isinstance(at := at[word], dict):
            raise UserError(f"farm: --set {key}: {'.'.join(way[: place + 1])} is no mapping of keys")
    return cast(dict[str, Any], at)


def _nearest(raw: Mapping[str, Any], key: str) -> str:
    """Return a hint: the key of the agent's recipe, or one of similar spelling."""
    known = list(_leaves(raw, ""))
    section, _, rest = key.partition(".")
    if section == "agents":
        agent = raw["agents"][rest.partition(".")[0]]
        own = f"recipes.{agent.get('finetune', {}).get('recipe')}.{key.rpartition('.')[2]}"
        if own in known:
            return f"; did you mean '{own}', of the recipe that it learns by?"
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _leaves(rows: Mapping[str, Any], before: str) -> Iterator[str]:
    for key, value in rows.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
