"""`benchmark rlscheduler`: policies under RLScheduler's protocol.

Policies play ten published sequences of a log, and sequences that do not overlap. The ten overlap, so no interval can
be computed from them; the others are consecutive, from the log's first job on. Bounded slowdown is
max(1, (wait + run) / max(run, 10 s)). The peer's utilisation is work over processors times the time from the first
submission to the last *start*.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core import storage
from pipeline.core.config import MachinesCard, known_names
from pipeline.core.schemas.columns import integers, numbers, table
from pipeline.core.storage.files import check_out
from pipeline.core.types import SHORTEST_BOUNDED, THOUSANDTHS, KeyArray, Policy
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.external.loading import external, is_external
from pipeline.interactive.machines.rlscheduler_workload import SEQUENCE, STARTS, Protocol, read_protocol
from pipeline.lookahead.planner import PREFIX, Planner
from pipeline.problems.machines.env.evaluation.play import play_on
from pipeline.problems.machines.env.nouns import BLOCKING, EASY_WITHIN, JobsBatch, Machines, Placed, end_to_end
from pipeline.problems.machines.env.simulator.batch import COSTS, Simulator
from pipeline.problems.machines.heuristics.rules import HEURISTICS, PEERS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import network_base, planned
from pipeline.progress import progress, say
from pipeline.simulation.rollout import Insider

PLAYED = {
    "trace": pa.Column(str),
    "seq": integers(0),
    "start_index": integers(0),
    "backfill": integers(0, 1),
    "policy": pa.Column(str),
    "avg_bounded_slowdown": numbers(1.0),
}
KEYS = ["trace", "seq", "backfill", "policy"]
RLSCHEDULER, RLSCHEDULER_WAITS = (
    table(title, PLAYED | {name: numbers(0.0) for name in names}, KEYS)
    for title, names in (
        ("RLScheduler", ("avg_wait_s", "utilization_peer", "makespan_s")),
        ("RLSchedulerWaits", ("p99_wait_s", "longest_wait_s", "area_weighted_response_s")),
    )
)
RLSCHEDULER_PAIRED = table(
    "RLSchedulerPaired",
    {"policy": pa.Column(str), "against": pa.Column(str), "n": integers(1)}
    | {name: numbers(1.0) for name in ("mean", "mean_against")}
    | {name: pa.Column("float64") for name in ("difference", "difference_low", "difference_high")},
    ["policy", "against"],
)

DEFAULT = ("fcfs", "sjf", "f1", "saf", "wfp3", "unicep", "wfp_peer", "uni_peer")
REFERENCES = ("sjf", "saf", "f1")
PAST = 1900  # first jobs of a log, before all published sequences: the past that look-ahead knows
FOREVER = 1e15  # s: no episode is cut
RESAMPLES, CONFIDENCE, SEED = 4000, 0.95, 1  # of the bootstrap
DIGITS = 12  # published numbers are compared to a millionth
ENDS = ("_waits", "_paired")  # of the other tables' names


class Player(NamedTuple):
    """A policy, and the number of waiting jobs that it sees."""

    policy: Policy | Insider
    slots: int


def run(trace: Path, most: int, backfill: bool, names: Sequence[str], out: Path) -> pd.DataFrame:
    """Write a row for each sequence and policy to `out`, waits and paired intervals next to it; return the means."""
    for end in ("", *ENDS):
        check_out(out.with_name(f"{out.stem}{end}{out.suffix}"), [".csv"], [trace], "table")
    titles: dict[str, str] = {}
    for name in dict.fromkeys(names or DEFAULT):
        title = _title(name)
        if title in titles or (title != name and title.removeprefix(PREFIX) in HEURISTICS):
            raise UserError(f"--policy {name}: expected names that differ, found another '{title}'")
        titles[title] = name
    known = {title: _player(name) for title, name in titles.items()}
    log = read_protocol(trace, most)
    who = {title: player(log) for title, player in known.items()}
    planning = any(isinstance(player.policy, Planner) for player in who.values())
    published, others = fitting(log), apart(log, after=PAST if planning else 0)
    if not published:
        raise UserError(f"{trace}: {len(log.fields)} jobs; the first published sequence needs {min(STARTS) + SEQUENCE}")
    title = trace.name.removesuffix(".gz").removesuffix(".swf")
    failed: dict[str, PolicyError] = {}
    with progress(f"benchmark {title}, percent", 100) as advance:
        found = rows(log, title, backfill, who, published, lambda share: advance(50 * share), failed)
        left = {name: player for name, player in who.items() if name not in failed}
        disjoint = rows(log, title, backfill, left, others, lambda share: advance(50 + 50 * share), failed)
    if len(published) < len(STARTS):
        say(f"{title}: long enough for {len(published)} of the {len(STARTS)} published sequences")
    tables = [("", found, RLSCHEDULER), (ENDS[0], found, RLSCHEDULER_WAITS)]
    pairs = paired(disjoint, SEED)
    if len(pairs):  # a reference played, and another policy
        tables.append((ENDS[1], pairs, RLSCHEDULER_PAIRED))
    for end, frame, schema in tables:
        storage.write_table(out.with_name(f"{out.stem}{end}{out.suffix}"), frame[list(schema.columns)], schema, DIGITS)
    for error in failed.values():
        say(f"{out}: without {error}")
    if failed:
        raise UserError(f"{out}: written without {', '.join(failed)}, which failed")
    measured = [name for name in RLSCHEDULER_WAITS.columns if found[name].dtype == "float64"]
    return found.groupby("policy", sort=False)[measured].mean().reset_index()


def _title(name: str) -> str:
    """Return a policy's name in a table: that of its folder for a model, also with look-ahead."""
    if name in HEURISTICS or name in PEERS or Path(name).is_dir() or is_external(name):
        return Path(name).name
    return PREFIX * name.startswith(PREFIX) + Path(name.removeprefix(PREFIX)).name


def _player(name: str) -> Callable[[Protocol], Player]:
    """Return a function that makes the player of a policy from a log, which is read later."""
    rules, base = {**HEURISTICS, **PEERS}, name.removeprefix(PREFIX)
    if name in rules:
        return lambda log: Player(rules[name], SEQUENCE)
    if is_external(name):

        def outside(log: Protocol) -> Player:  # a model sees the jobs in its slots, a callable all
            policy = external(name, None, float(np.median(log.jobs(0, len(log.fields)).duration)))
            return Player(policy, policy.slots or SEQUENCE)

        return outside
    if base in rules and not Path(name).is_dir():
        return lambda log: Player(planned(rules[base], base, arrival_model([log.jobs(0, PAST)])), SEQUENCE)
    folder = name if Path(name).is_dir() else base
    if not Path(folder).is_dir():
        raise UserError(
            f"unknown policy '{name}': expected a model directory or a heuristic; {known_names(rules, name)}"
        )
    model = storage.read_model(Path(folder), MachinesCard)
    card = model.card
    if len(card.resources) != 1 or card.machines != 1 or card.dispatch == "greedy":
        found = f"{card.machines} machines of {', '.join(card.resources)}, dispatch {card.dispatch}"
        raise UserError(f"{folder}: expected an agent of one machine with one resource that blocks, found {found}")
    if folder != name:
        own = network_base(card, model.weights)
        return lambda log: Player(planned(own, base, arrival_model([log.jobs(0, PAST)])), card.slots)
    from pipeline.problems.machines.agents.networks.loading import restore  # torch: 2 s and 250 MB

    return lambda log: Player(restore(card, model.weights).policy, card.slots)


def fitting(log: Protocol) -> list[tuple[int, int]]:
    """Return (number, start) of the published sequences that a log is long enough for."""
    return [(k, start) for k, start in enumerate(STARTS) if start + SEQUENCE <= len(log.fields)]


def apart(log: Protocol, after: int = 0) -> list[tuple[int, int]]:
    """Return (number, start) of sequences that do not overlap, without those that begin in the first `after` jobs."""
    return [(k, k * SEQUENCE) for k in range(len(log.fields) // SEQUENCE) if k * SEQUENCE >= after]


def rows(
    log: Protocol,
    title: str,
    backfill: bool,
    who: Mapping[str, Player],
    starts: Sequence[tuple[int, int]],
    on_progress: Callable[[float], None],
    failed: dict[str, PolicyError],
) -> pd.DataFrame:
    """Return one row for each sequence and policy.

    Args:
        log: as the protocol reads it.
        title: the log's name in the table.
        backfill: are other jobs started while one waits for room?
        who: policies by name.
        starts: (number, index of the first job) of each sequence.
        on_progress: receives the share of the policies that have played.
        failed: external policies that failed are added; they have no rows.

    Raises:
        PolicyError: all failed.
    """
    jobs = end_to_end([log.jobs(start) for _, start in starts])
    names = {"seq": [number for number, _ in starts], "start_index": [start for _, start in starts]}
    frames = []
    for done, (name, player) in enumerate(who.items()):
        try:
            placed = play(log, jobs, backfill, player)
        except PolicyError as error:
            failed[name] = error
            continue
        measured = _measured(jobs, placed, log.processors)
        frames.append(measured.assign(trace=title, **names, backfill=int(backfill), policy=name))
        on_progress((done + 1) / len(who))
    if not frames:
        raise next(iter(failed.values()))
    return pd.concat(frames, ignore_index=True)


def play(log: Protocol, jobs: JobsBatch, backfill: bool, player: Player) -> Placed:
    """Return where and when a policy starts the jobs of sequences, each on an empty machine."""
    capacity, kind = np.array([[log.processors * THOUSANDTHS]]), np.zeros(1, dtype=np.int64)
    dispatch = EASY_WITHIN if backfill else BLOCKING
    machines = Machines(capacity, kind, player.slots, dispatch, FOREVER, FOREVER)
    simulator = Simulator(jobs, machines, COSTS["bounded_slowdown"](jobs))
    key: KeyArray = np.arange(jobs.episodes, dtype=np.uint64)
    for _ in play_on(simulator, player.policy, key):
        pass
    return simulator.placed()


def _measured(jobs: JobsBatch, placed: Placed, processors: int) -> pd.DataFrame:
    """Return the metrics of each sequence."""
    wait = placed.start - jobs.arrival
    slowdown = np.maximum(1.0, (wait + jobs.duration) / np.maximum(jobs.duration, SHORTEST_BOUNDED))
    area = jobs.demand[:, 0] / THOUSANDTHS * jobs.duration
    found = []
    for first, last in zip(jobs.first[:-1], jobs.first[1:], strict=True):
        mine = slice(first, last)
        begin, work = jobs.arrival[first], area[mine].sum()
        found.append(
            {
                "avg_bounded_slowdown": slowdown[mine].mean(),
                "avg_wait_s": wait[mine].mean(),
                "utilization_peer": work / ((placed.start[mine].max() - begin) * processors),
                "makespan_s": placed.finish[mine].max() - begin,
                "p99_wait_s": np.quantile(wait[mine], 0.99),
                "longest_wait_s": wait[mine].max(),
                "area_weighted_response_s": (area[mine] * (wait[mine] + jobs.duration[mine])).sum() / work,
            }
        )
    return pd.DataFrame(found)


def paired(found: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Compare every policy with each reference on the same sequences, which must not overlap.

    The difference is the policy's mean bounded slowdown divided by the reference's, minus 1, with a paired bootstrap
    over sequences.
    """
    value = found.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
    counts = resample(len(value), RESAMPLES, np.random.default_rng(seed))
    means = pd.DataFrame(counts @ value.to_numpy() / len(value), columns=value.columns)
    pairs = []
    for reference in (name for name in REFERENCES if name in value):
        for policy in (name for name in found["policy"].unique() if name != reference):
            gap = means[policy] / means[reference] - 1
            low, high = gap_interval(gap[1:].to_numpy(), CONFIDENCE, len(value))
            numbers = {"n": len(value), "mean": means[policy][0], "mean_against": means[reference][0]}
            row = {"policy": policy, "against": reference, **numbers, "difference": gap[0]}
            pairs.append({**row, "difference_low": float(low), "difference_high": float(high)})
    return pd.DataFrame(pairs)
