"""`watch`: does a champion still do well on the newest jobs of a log? Regret alone raises an alarm."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline import storage
from pipeline.champions.lines import CHAMPIONS, PolicyRef, champions_in
from pipeline.champions.regret import ALARM, CANNOT_TELL, Rival, Watched, regrets, rivals, watched
from pipeline.config import Params
from pipeline.core import FloatArray
from pipeline.errors import TooShortError, UserError
from pipeline.logs.growth import Growth, grown, logged
from pipeline.problems import problem_of
from pipeline.progress import no_progress, progress
from pipeline.stages.replaying import measures, model_of, play, seat_of, with_standing, workplace
from pipeline.storage import Chosen

NAME = "champion"


class Asked(NamedTuple):
    """Who is watched over, and beside whom."""

    scenario: str
    champion: PolicyRef
    chosen: Chosen
    beside: Mapping[str, Rival]


def run(params: Params, log: Path, scenario: str | None) -> tuple[int, list[str]]:
    """Return what to say of a champion on the newest windows of a log, and the exit code.

    Raises:
        UserError: nobody can be watched over there.
    """
    rules = params.rules.watch
    asked = _asked(params, _scenario(params, scenario))
    with progress(f"read {log}, percent", 100, brief=True) as advance:
        growth = grown(params, asked.scenario, log, advance)
    results = storage.read_jobset_results(params, asked.scenario, problem_of(params, asked.scenario).tables)
    results, standing = with_standing(params, asked.scenario, asked.champion, asked.chosen, results)
    cost, _ = measures(params, asked.scenario, results)
    judged = {name: regrets(results, standing, one, cost) for name, one in asked.beside.items()}
    new = _new(params, asked, growth, cost)
    found = watched(new, judged, asked.beside, rules, params.seed)
    return found.code, list(_said(asked, found, growth, judged[found.rival]))


def _scenario(params: Params, scenario: str | None) -> str:
    there = logged(params)
    if scenario is not None:
        params.scenario(scenario)
    if scenario is None and len(there) == 1:
        return next(iter(there))
    if scenario not in there:
        cut = f"cut from one: {', '.join(there) or 'none'}"
        what = "name a scenario by --scenario" if scenario is None else f"scenario '{scenario}' is not cut from a log"
        raise UserError(f"watch: {what}; {cut}")
    return scenario


def _asked(params: Params, scenario: str) -> Asked:
    line, chosen = champions_in(storage.read_text(CHAMPIONS)).get(scenario), storage.read_chosen(scenario)
    if line is None:
        raise UserError(f"{CHAMPIONS}: scenario '{scenario}' has no champion: 'python -m pipeline promote {scenario}'")
    references = problem_of(params, scenario).comparison.references
    played = {name: means for name, means in chosen.validation.items() if name not in references}
    beside = rivals(line.policy, played, params.scenario(scenario).loads)
    return Asked(scenario, line.ref, chosen, beside)


def _new(params: Params, asked: Asked, growth: Growth, cost: str) -> dict[str, FloatArray]:
    """Return the champion's regret beside each rival in the new windows; none where they do not fill one."""
    own = growth.params
    with model_of(params, asked.scenario, asked.champion) as model, workplace(model):
        storage.link_log(own)
        try:
            drawn = problem_of(own, asked.scenario).draw(own, asked.scenario, no_progress)
        except TooShortError:
            return dict.fromkeys(asked.beside, np.empty(0))
        drawn.write(storage.jobsets_folder(asked.scenario))
        names = dict.fromkeys(name for one in asked.beside.values() for name in one.by_load.values())
        seats = {name: seat_of(own, name, asked.chosen) for name in names}
        with progress(f"replay {asked.scenario}", 1, brief=True) as advance:
            results = play(own, asked.scenario, {NAME: asked.champion, **seats}, asked.chosen.knobs)
            advance(1)
    return {name: regrets(results, NAME, one, cost) for name, one in asked.beside.items()}


def _said(asked: Asked, found: Watched, growth: Growth, judged: FloatArray) -> Iterator[str]:
    who = f"watch: {asked.scenario}: {asked.champion.policy}"
    days = growth.days / found.windows if found.windows else growth.judged_days / max(len(judged), 1)
    if found.code == CANNOT_TELL:
        more = max(1, int(np.ceil((found.needed - found.windows) * days)))
        yield f"{who}: cannot tell: {found.windows} windows of {found.needed}; about {more} more days"
    elif found.code == ALARM:
        yield f"{who}: ALARM: its mean regret is above {100 * found.low:.1f} %, seen after {found.seen} windows"
    else:
        yield f"{who}: no alarm in {found.windows} windows"
    if found.windows:
        told = (
            f"mean regret beside {found.rival} {100 * found.mean:+.1f} % in {found.windows} windows of {days:.2g} days"
        )
        yield f"watch: {told}; {100 * float(np.mean(judged)):+.1f} % in the {len(judged)} that it was judged on"
    for change in growth.changes:
        yield f"watch: {change.what}: {change.now:.3g}, when judged {change.judged:.3g}"
