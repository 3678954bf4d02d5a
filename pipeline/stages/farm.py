"""`farm`: make all stale stages, several at the same time; then run `dvc repro`, which only has to confirm them."""

from collections.abc import Callable, Collection

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.execution.commands import Commands
from pipeline.farming import dvc_stages, notes
from pipeline.farming.farm import Command, Farm, failure, show
from pipeline.farming.plan import Plan, with_dependents
from pipeline.progress import progress, remark, say
from pipeline.stages import compiling
from pipeline.tracking.run import LAST

REPRO = "dvc repro"


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
