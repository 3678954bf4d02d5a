"""`benchmark rlscheduler`: policies under a peer's published protocol."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.config import MachinesCard, known_names
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.external.loading import external, is_external
from pipeline.lookahead.planner import PREFIX, Planner
from pipeline.problems.machines.evaluation.rlscheduler import Player, apart, fitting, paired, rows
from pipeline.problems.machines.heuristics.rules import HEURISTICS, PEERS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.naming import network_base, planned
from pipeline.problems.machines.workload.rlscheduler import SEQUENCE, STARTS, Protocol, read_protocol
from pipeline.progress import progress, say
from pipeline.schemas.columns import integers, numbers
from pipeline.storage.files import check_out

PLAYED = {
    "trace": pa.Column(str),
    "seq": integers(0),
    "start_index": integers(0),
    "backfill": integers(0, 1),
    "policy": pa.Column(str),
    "avg_bounded_slowdown": numbers(1.0),
}
RLSCHEDULER = pa.DataFrameSchema(
    PLAYED | {"avg_wait_s": numbers(0.0), "utilization_peer": numbers(0.0), "makespan_s": numbers(0.0)},
    strict=True,
    ordered=True,
    unique=["trace", "seq", "backfill", "policy"],
    name="RLScheduler",
)
RLSCHEDULER_WAITS = pa.DataFrameSchema(
    PLAYED | {name: numbers(0.0) for name in ("p99_wait_s", "longest_wait_s", "area_weighted_response_s")},
    strict=True,
    ordered=True,
    unique=["trace", "seq", "backfill", "policy"],
    name="RLSchedulerWaits",
)
RLSCHEDULER_PAIRED = pa.DataFrameSchema(
    {
        "policy": pa.Column(str),
        "against": pa.Column(str),
        "n": integers(1),
        "mean": numbers(1.0),
        "mean_against": numbers(1.0),
        "difference": pa.Column("float64"),
        "difference_low": pa.Column("float64"),
        "difference_high": pa.Column("float64"),
    },
    strict=True,
    ordered=True,
    unique=["policy", "against"],
    name="RLSchedulerPaired",
)


DEFAULT = ("fcfs", "sjf", "f1", "saf", "wfp3", "unicep", "wfp_peer", "uni_peer")
PAST = 1900  # of a log's first jobs, before all published sequences: what policies that look ahead know of it
SEED = 1  # of the bootstrap
DIGITS = 12  # what others published is compared to a millionth
ENDS = ("_waits", "_paired")  # of the other tables
LOG_ENDS = (".gz", ".swf")


def run(trace: Path, most: int, backfill: bool, names: Sequence[str], out: Path) -> pd.DataFrame:
    """Write one row a sequence and policy to `out`, and beside it waits and paired intervals; return the means."""
    for end in ("", *ENDS):
        check_out(out.with_name(f"{out.stem}{end}{out.suffix}"), [".csv"], [trace], "table")
    names = names or DEFAULT
    _check_names(names)
    known = {_title(name): _player(name) for name in dict.fromkeys(names)}
    log = read_protocol(trace, most)
    who = {title: player(log) for title, player in known.items()}
    planning = any(isinstance(player.policy, Planner) for player in who.values())
    published, others = fitting(log), apart(log, behind=PAST if planning else 0)
    if not published:
        raise UserError(f"{trace}: {len(log.fields)} jobs; the first published sequence needs {min(STARTS) + SEQUENCE}")
    title = _name(trace)
    failed: dict[str, PolicyError] = {}
    with progress(f"benchmark {title}, percent", 100) as advance:
        found = rows(log, title, backfill, who, published, lambda share: advance(50 * share), failed)
        left = {name: player for name, player in who.items() if name not in failed}
        alone = rows(log, title, backfill, left, others, lambda share: advance(50 + 50 * share), failed)
    if len(published) < len(STARTS):
        say(f"{title}: long enough for {len(published)} of the {len(STARTS)} published sequences")
    tables = [("", found, RLSCHEDULER), (ENDS[0], found, RLSCHEDULER_WAITS)]
    pairs = paired(alone, SEED)
    if len(pairs):  # none where no reference plays, or nobody else
        tables.append((ENDS[1], pairs, RLSCHEDULER_PAIRED))
    for end, frame, schema in tables:
        storage.write_table(out.with_name(f"{out.stem}{end}{out.suffix}"), frame[list(schema.columns)], schema, DIGITS)
    for error in failed.values():
        say(f"{out}: without {error}")
    if failed:
        raise UserError(f"{out}: written without {', '.join(failed)}, which failed")
    numbers = [name for name in RLSCHEDULER_WAITS.columns if found[name].dtype == "float64"]
    return found.groupby("policy", sort=False)[numbers].mean().reset_index()


def _name(trace: Path) -> str:
    name = trace.name
    for end in LOG_ENDS:
        name = name.removesuffix(end)
    return name


def _title(name: str) -> str:
    """Return what a policy is called in a table: a model, and one that looks ahead, by its directory."""
    if name in HEURISTICS or name in PEERS or Path(name).is_dir() or is_external(name):
        return Path(name).name
    return PREFIX * name.startswith(PREFIX) + Path(name.removeprefix(PREFIX)).name


def _check_names(names: Sequence[str]) -> None:
    """Refuse policies that would have the same name in a table."""
    seen: set[str] = set()
    for name in dict.fromkeys(names):
        title = _title(name)
        if title in seen or (title != name and title.removeprefix(PREFIX) in HEURISTICS):
            raise UserError(f"--policy {name}: expected names that differ, found another '{title}'")
        seen.add(title)


def _player(name: str) -> Callable[[Protocol], Player]:
    """Return who plays on a log that is not read yet."""
    rules, base = {**HEURISTICS, **PEERS}, name.removeprefix(PREFIX)
    if name in rules:
        return lambda log: Player(rules[name], SEQUENCE)
    if is_external(name):
        return _external(name)
    if base in rules and not Path(name).is_dir():
        return lambda log: Player(planned(rules[base], base, arrival_model([log.jobs(0, PAST)])), SEQUENCE)
    folder = name if Path(name).is_dir() else base
    if not Path(folder).is_dir():
        raise UserError(
            f"unknown policy '{name}': expected a model directory or a heuristic; {known_names(rules, name)}"
        )
    model = _model(folder)
    if folder != name:
        asked = network_base(model.card, model.weights)
        return lambda log: Player(planned(asked, base, arrival_model([log.jobs(0, PAST)])), model.card.slots)
    from pipeline.problems.machines.networks.loading import restore  # torch: 2 s and 250 MB that heuristics do without

    return lambda log: Player(restore(model.card, model.weights).policy, model.card.slots)


def _external(name: str) -> Callable[[Protocol], Player]:
    """Return an external policy; a model is shown as many jobs as it was trained with, a callable all of them."""

    def player(log: Protocol) -> Player:
        policy = external(name, None, float(np.median(log.jobs(0, len(log.fields)).duration)))
        return Player(policy, policy.slots or SEQUENCE)

    return player


def _model(folder: str) -> storage.Model[MachinesCard]:
    model = storage.read_model(Path(folder), MachinesCard)
    card = model.card
    if len(card.resources) != 1 or card.machines != 1 or card.dispatch == "greedy":
        found = f"{card.machines} machines of {', '.join(card.resources)}, dispatch {card.dispatch}"
        raise UserError(f"{folder}: expected an agent of one machine with one resource that blocks, found {found}")
    return model
