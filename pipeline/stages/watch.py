"""`watch`: does a champion still perform well on the newest jobs of a log? Only regret raises an alarm."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.champions.lines import CHAMPIONS, PolicyRef, champions_in
from pipeline.champions.regret import ALARM, CANNOT_TELL, Rival, Watched, regrets, rivals, watched
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage import Chosen
from pipeline.core.types import FloatArray, Json
from pipeline.errors import TooShortError, UserError
from pipeline.interactive.logs.growth import Growth, grown, logged
from pipeline.problems import problem_of
from pipeline.progress import no_progress, progress
from pipeline.stages.replaying import measures, model_of, play, seat_of, with_champion, workplace

NAME = "champion"


class Incumbent(NamedTuple):
    """A champion and the rivals that it is compared with."""

    scenario: str
    seat: PolicyRef
    chosen: Chosen
    rivals: Mapping[str, Rival]


def run(params: Params, log: Path, scenario: str | None) -> tuple[int, dict[str, Json], list[str]]:
    """Compare a champion with its rivals on new jobs; return the exit code, and the findings as data and in words."""
    champion = _incumbent(params, _scenario(params, scenario))
    scenario = champion.scenario
    with progress(f"read {log}, percent", 100, brief=True) as advance:
        growth = grown(params, scenario, log, advance)
    results = storage.read_jobset_results(params, scenario, problem_of(params, scenario).tables)
    results, name = with_champion(params, scenario, champion.seat, champion.chosen, results)
    cost, _ = measures(params, scenario, results)
    judged = {rival: regrets(results, name, one, cost) for rival, one in champion.rivals.items()}
    new = _new_regrets(params, champion, growth, cost)
    found = watched(new, judged, champion.rivals, params.rules.watch, params.seed)
    what = (champion, found, growth, judged[found.rival])
    return found.code, _as_data(*what), list(_findings(*what))


def _scenario(params: Params, scenario: str | None) -> str:
    there = logged(params)
    if scenario is not None:
        params.scenario(scenario)
    elif len(there) == 1:
        return next(iter(there))
    if scenario not in there:
        known = f"cut from one: {', '.join(there) or 'none'}"
        what = "name a scenario by --scenario" if scenario is None else f"scenario '{scenario}' is not cut from a log"
        raise UserError(f"watch: {what}; {known}")
    return scenario


def _incumbent(params: Params, scenario: str) -> Incumbent:
    line, chosen = champions_in(storage.read_text(CHAMPIONS)).get(scenario), storage.read_chosen(scenario)
    if line is None:
        raise UserError(f"{CHAMPIONS}: scenario '{scenario}' has no champion: 'python -m pipeline promote {scenario}'")
    references = problem_of(params, scenario).comparison.references
    played = {name: means for name, means in chosen.validation.items() if name not in references}
    return Incumbent(scenario, line.ref, chosen, rivals(line.policy, played, params.scenario(scenario).loads))


def _new_regrets(params: Params, champion: Incumbent, growth: Growth, cost: str) -> dict[str, FloatArray]:
    """Return the champion's regret against each rival in the new windows; empty if jobs do not fill one."""
    own, scenario = growth.params, champion.scenario
    with model_of(params, scenario, champion.seat) as model, workplace(model):
        storage.link_log(own)
        try:
            drawn = problem_of(own, scenario).draw(own, scenario, no_progress)
        except TooShortError:
            return dict.fromkeys(champion.rivals, np.empty(0))
        drawn.write(storage.jobsets_folder(scenario))
        names = dict.fromkeys(name for one in champion.rivals.values() for name in one.by_load.values())
        seats = {name: seat_of(own, name, champion.chosen) for name in names}
        with progress(f"replay {scenario}", 1, brief=True) as advance:
            results = play(own, scenario, {NAME: champion.seat, **seats}, champion.chosen.knobs)
            advance(1)
    return {name: regrets(results, NAME, one, cost) for name, one in champion.rivals.items()}


def _as_data(champion: Incumbent, found: Watched, growth: Growth, judged: FloatArray) -> dict[str, Json]:
    """Return the findings; regrets are relative."""
    verdict = {ALARM: "alarm", CANNOT_TELL: "cannot tell"}.get(found.code, "no alarm")
    names = {"scenario": champion.scenario, "champion": champion.seat.policy, "rival": found.rival, "verdict": verdict}
    counts = {"windows": found.windows, "windows_needed": found.needed, "alarm_after_windows": found.seen}
    regret = {"mean_regret": found.mean, "mean_regret_low": found.low, "mean_regret_when_judged": float(judged.mean())}
    changes = [change._asdict() for change in growth.changes]
    return {**names, **counts, **regret, "days": growth.days, "changes": changes}


def _findings(champion: Incumbent, found: Watched, growth: Growth, judged: FloatArray) -> Iterator[str]:
    title = f"watch: {champion.scenario}: {champion.seat.policy}"
    days = growth.days / found.windows if found.windows else growth.judged_days / max(len(judged), 1)
    if found.code == CANNOT_TELL:
        more = max(1, int(np.ceil((found.needed - found.windows) * days)))
        yield f"{title}: cannot tell: {found.windows} windows of {found.needed}; about {more} more days"
    elif found.code == ALARM:
        yield f"{title}: ALARM: its mean regret is above {100 * found.low:.1f} %, seen after {found.seen} windows"
    else:
        yield f"{title}: no alarm in {found.windows} windows"
    if found.windows:
        regret = f"{100 * found.mean:+.1f} % in {found.windows} windows of {days:.2g} days"
        before = f"{100 * float(np.mean(judged)):+.1f} % in the {len(judged)} that it was judged on"
        yield f"watch: mean regret compared with {found.rival} {regret}; {before}"
    for change in growth.changes:
        yield f"watch: {change.what}: {change.now:.3g}, when judged {change.judged:.3g}"
