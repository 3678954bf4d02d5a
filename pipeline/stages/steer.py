"""`steer slurm`: a named policy, or a scenario's champion, orders the queue of a running Slurm."""

from contextlib import suppress
from pathlib import Path

from pipeline.core.config import Params
from pipeline.core.storage.files import OWNER, write
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.stages.serve import VERDICT, heuristic, looking
from pipeline.steering.rows import OddError
from pipeline.steering.session import steer
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.slurm import Slurm
from pipeline.steering.states import misfits


def run(params: Params, scenario: str, policy: str, limit_ms: float, settings: Settings) -> None:
    """Steer until a signal arrives."""
    live = problem_of(params, scenario).live
    if not live.places:
        raise UserError(f"scenario '{scenario}': its policies do not place jobs on machines, as Slurm does")
    with looking(params, scenario, policy) as look:
        named = look()
        if settings.mode is Mode.SHADOW:
            from pipeline.steering.replay import check_replayable, verdicts  # needs the simulator, unlike other modes

            check_replayable(named.place)
        if Path(named.place).is_dir():
            with suppress(OddError, UserError):  # `steer` reports an unreadable cluster
                for line in misfits(params, scenario, Slurm().read().nodes):
                    say(f"steer: {line}")
        steer(params, scenario, look, heuristic(live.fallback), limit_ms / 1000, settings)
    if settings.mode is Mode.SHADOW:
        lines = list[str]()
        for line in verdicts(settings.folder, named.place, params.seed):
            say(f"shadow: {line}")
            lines.append(f"{line}\n")
        write(settings.folder / VERDICT, "".join(lines).encode(), OWNER)
