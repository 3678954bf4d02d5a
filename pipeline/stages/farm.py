"""`farm`: make all stale stages, several at the same time; then run `dvc repro`, which only has to confirm them.

With --set or --seeds: make a grid of experiments, several at a time, and rank its points.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict

from pipeline.core import storage
from pipeline.core.config import Params, raw_params
from pipeline.errors import UserError
from pipeline.execution.commands import Commands
from pipeline.execution.relay import elsewhere
from pipeline.farming import dvc_stages, grid, notes, sweep_table
from pipeline.farming.farm import Command, Farm, Plan, failure, show, some, with_dependents
from pipeline.farming.grid import Point
from pipeline.farming.sweep_table import Saved
from pipeline.farming.workspaces import Base, clear, lay_out
from pipeline.progress import progress, remark, say
from pipeline.stages import compiling
from pipeline.tracking.digests import md5_of, working_tree
from pipeline.tracking.run import LAST

REPRO = "dvc repro"
FOLDER = storage.REPORTS / "sweeps"
SAVED = "saved"


def run(params: Params, workers: int, first: Callable[[], None] = lambda: None) -> dict[str, str] | None:
    """Bring all stages up to date, byte for byte as `dvc repro` does.

    Return DVC's action by stage, or None if none was stale. Up to `workers` stages run at the same time. `first` is
    called before DVC determines what is stale, while no other farm runs and dvc.lock is intact. Raises UserError: a
    stage failed and its dependents were skipped, or another farm runs.
    """
    with notes.exclusive() as held:
        notes.repair()
        first()
        stale = dvc_stages.stale()
        if not stale and not notes.unfinished():
            remark("farm: no stage is stale")
            return None
        needs = dvc_stages.graph()
        stages = with_dependents(needs, stale)
        say(f"farm: {len(stages)} of {len(needs)} stages are stale or depend on stale ones, {workers} at a time")
        fates = make_here(params, needs, stages, workers, held)
        notes.end(_confirmed(len(needs), held))
        return fates


def make_here(
    params: Params, needs: dvc_stages.Graph, stages: Collection[str], workers: int, held: int
) -> dict[str, str]:
    """Compile the code of some stages of the graph `needs`, make them in this repository; return DVC's action by stage.

    For each of its stages, `stages` has either all dependents or none. `held` is the descriptor of a file that stays
    locked while anything runs. Raises UserError: a stage failed, and its dependents were skipped.
    """
    notes.begin()
    compiling.first(params, stages)
    seconds = notes.seconds()
    plan = Plan(needs, sorted(stages), seconds, LAST)

    def ended(stage: str, fate: str, took_s: float) -> str:
        """Save dvc.lock and the duration of the stage."""
        notes.keep()
        if fate == dvc_stages.RAN:
            seconds[stage] = round(took_s, 1)
            notes.note(seconds)
        return fate

    fates = Farm(plan, workers, lambda stage: Command(dvc_stages.repro(stage)), ended, held).work()
    if plan.failed:
        raise UserError(failure(plan))
    return fates


def _confirmed(total: int, held: int) -> list[str]:
    order = list[str]()
    with progress(f"farm: {REPRO} goes through what was made, stages", total) as advance, Commands([held]) as commands:

        def on_line(line: str) -> None:
            if found := dvc_stages.fate(line):
                order.append(found[0])
                advance(len(order))
                if found[1] != dvc_stages.UNCHANGED:
                    say(f"farm: {REPRO}: {found[0]} {found[1]}")
            show(REPRO, line)

        if commands.run(dvc_stages.repro(), on_line):
            raise UserError(f"farm: {REPRO} failed afterwards: run it to see why")
    return order


def sweep(
    params: Params, settings: Sequence[str], seeds: str | None, named: Sequence[str], workers: int
) -> tuple[dict[str, object], str]:
    """Make all missing points of a sweep; show and return the results of all, and the error message of failed points.

    `settings` are like KEY=VALUE,VALUE, `seeds` like 1..5 or 1,2,7. The `named` agents take the seeds; the default is
    those that the keys configure. Raises UserError: a key or value is wrong.
    """
    swept = grid.settings(settings)
    drawn = grid.seeds(seeds) if seeds is not None else []
    agents = grid.agents_about(params, swept, named)
    if drawn and not agents:
        raise UserError("farm: --seeds: no key that is set belongs to an agent; say whose seeds by --agent NAME")
    points = grid.grid(swept, drawn, agents)
    raw = raw_params()
    checked = [grid.checked(raw, point) for point in points]
    workers = workers if elsewhere() else min(workers, os.cpu_count() or 1)
    with notes.exclusive() as held:
        say(*Base.here().said)
        if drawn:
            say(f"farm: seeds {', '.join(map(str, drawn))} of pretrain and finetune of {', '.join(agents)}")
        affected = _make_shared(params, {key for point in points for key in point.values}, workers, held)
        base, content = Base.here(), working_tree().content
        by_name = {point.name(content): point for point in points}
        error = _make_points(base, by_name, affected, workers, held)
    saved = base.saved()
    every = [
        Saved(point, name, base.ref(name), of)
        for (name, point), of in zip(by_name.items(), checked, strict=True)
        if name in saved
    ]
    shown = [{"name": one.name, **asdict(one.point)} for one in every]
    return {"points": shown, "tables": _show(every, agents) if every else {}}, error


def _make_shared(params: Params, keys: Collection[str], workers: int, held: int) -> set[str]:
    """Make the stale stages that all points share, so that DVC provides them; return the stages of a point."""
    notes.repair()
    needs = dvc_stages.graph()
    affected = with_dependents(needs, dvc_stages.stages_reading(keys))
    if not affected:
        raise UserError(f"farm: no stage reads {', '.join(sorted(keys))}: there is nothing to compare")
    say(f"farm: each point has {len(affected)} stages of its own: {some(sorted(affected))}")
    shared = with_dependents(needs, dvc_stages.stale()) - affected
    if shared:
        say(f"farm: {len(shared)} stages that all points share are stale, and are made here first")
        make_here(params, needs, shared, workers, held)
    compiling.first(params, affected)
    return affected


def _make_points(base: Base, named: Mapping[str, Point], affected: Collection[str], workers: int, held: int) -> str:
    """Make the missing points; return the error message of those that failed."""
    saved = base.saved()
    missing = {name: point for name, point in named.items() if name not in saved}
    say(f"farm: {len(named)} points, {len(named) - len(missing)} there already, {workers} at a time")
    if not missing:
        return ""
    known = notes.seconds()
    took_s = sum(known.get(stage, 0.0) for stage in affected)
    seconds = dict.fromkeys(missing, took_s) if all(stage in known for stage in affected) else {}
    plan = Plan({name: frozenset[str]() for name in missing}, list(missing), seconds)

    def ended(name: str, _: str, took_s: float) -> str:
        """Remove the workspace; estimate that the other points take as long."""
        clear(name)
        seconds.update(dict.fromkeys(missing, took_s))
        return SAVED

    clear()
    try:
        Farm(plan, workers, lambda name: lay_out(base, missing[name], name), ended, held).work()
    finally:
        clear()
    return failure(plan) if plan.failed else ""


def _show(saved: Sequence[Saved], agents: Sequence[str]) -> dict[str, object]:
    """Write, print and return the results of all points for each agent of the sweep."""
    if not agents:
        remark("farm: the keys belong to no agent: dvc exp show has the numbers of each point")
    what = md5_of(" ".join(sorted(one.name for one in saved)).encode())[:6]
    tables = dict[str, object]()
    for agent in agents:
        table = tables[agent] = sweep_table.sweep_table(saved, agent)
        place = FOLDER / f"{agent}-{what}"
        storage.write(place.with_suffix(".csv"), table.to_csv(index=False, float_format="%.6g").encode())
        storage.write(place.with_suffix(".png"), sweep_table.picture(table))
        remark(*sweep_table.lines(table), f"farm: {place}.csv, {place}.png; each point: dvc exp show")
    return tables
