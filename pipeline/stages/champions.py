"""`promote`, `rollback` and `watch`: the champion of a scenario.

The former change its line in champions.yaml, whose history git keeps. `watch` says whether it still performs well on
the newest jobs of a log. Only regret raises an alarm.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from pipeline.champions.gate import Verdict
from pipeline.champions.lines import CHAMPIONS, Champion, PolicyRef, champions_in, promoted, rolled_back, with_line
from pipeline.champions.regret import ALARM, CANNOT_TELL, Rival, Watched, regrets, rivals, watched
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage import Chosen
from pipeline.core.storage.files import one_line
from pipeline.core.types import FloatArray, Json
from pipeline.errors import TooShortError, UserError
from pipeline.interactive.logs.growth import Growth, grown, logged
from pipeline.problems import problem_of
from pipeline.progress import no_progress, progress
from pipeline.stages.gate import VERDICTS, read_advice
from pipeline.stages.replaying import measures, model_of, play, seat_of, with_champion, workplace
from pipeline.tracking.digests import measured

READ: TypeAdapter[dict[str, Verdict]] = TypeAdapter(dict[str, Verdict])
AGAIN = "run 'dvc repro gate' first"
NAME = "champion"


def promote(params: Params, scenario: str | None) -> dict[str, Verdict]:
    """Apply the gate's verdict on one scenario or on all, and return what was applied."""
    try:
        verdicts = READ.validate_python(storage.read_json(VERDICTS))
    except ValidationError as error:
        raise UserError(f"{VERDICTS}: not what the gate writes ({one_line(error)}): {AGAIN}") from error
    text, applied = storage.read_text(CHAMPIONS), dict[str, Verdict]()
    if scenario is not None:
        params.scenario(scenario)
    for name in [scenario] if scenario else [name for name in params.scenarios if name in verdicts]:
        found, line = verdicts.get(name), champions_in(text).get(name)
        if found is None:
            raise UserError(f"{VERDICTS}: no verdict on scenario '{name}': {AGAIN}")
        _check_current(name, found, line)
        if found.advice != (advice.line if (advice := read_advice(params, name)) else ""):
            raise UserError(f"{VERDICTS}: {name}: judged by other advice than there is now: {AGAIN}")
        if found.promote is not None:
            text = with_line(text, name, promoted(line, found.promote))
        elif scenario:
            raise UserError(f"{VERDICTS}: {name}: no candidate passed the gate: {found.line}")
        applied[name] = found
    storage.write(CHAMPIONS, text.encode())
    return applied


def rollback(params: Params, scenario: str) -> tuple[dict[str, str], str]:
    """Restore a scenario's previous champion; return both champions, and a line on them."""
    params.scenario(scenario)
    text = storage.read_text(CHAMPIONS)
    lines = champions_in(text)
    if scenario not in lines:
        raise UserError(f"{CHAMPIONS}: scenario '{scenario}' has no champion to roll back")
    now = rolled_back(lines[scenario], scenario)
    storage.write(CHAMPIONS, with_line(text, scenario, now).encode())
    found = {"scenario": scenario, "champion": now.policy, "before": lines[scenario].policy}
    return found, f"{scenario}: {now.policy} restored; {found['before']} will not be promoted again"


def _check_current(scenario: str, found: Verdict, line: Champion | None) -> None:
    """Refuse a verdict on a champion other than that of the line, or on a model other than the present one."""
    against, now = (seat.digest if seat else None for seat in (found.champion, line))
    if against != now:
        raise UserError(f"{VERDICTS}: {scenario}: judged against another champion than {CHAMPIONS} has: {AGAIN}")
    if (seat := found.promote) is not None:
        folders = storage.model_folder(seat.policy, "policy"), storage.policy_folder(seat.policy)
        if any(folder.is_dir() and measured(folder) != seat.digest for folder in folders):
            raise UserError(f"{VERDICTS}: {scenario}: {seat.policy} has another model now: {AGAIN}")


class Incumbent(NamedTuple):
    """A champion and the rivals that it is compared with."""

    scenario: str
    seat: PolicyRef
    chosen: Chosen
    rivals: Mapping[str, Rival]


def watch(params: Params, log: Path, scenario: str | None) -> tuple[int, dict[str, Json], list[str]]:
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
