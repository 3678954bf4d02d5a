"""`watch`: a champion compared with the best heuristic on a log's new jobs; only regret raises an alarm."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from swf_lines import line

from pipeline.champions.lines import CHAMPIONS, Champion, PolicyRef, champions_in, digest_of_tuned, promoted, with_line
from pipeline.champions.regret import ALARM, CANNOT_TELL, QUIET
from pipeline.core import storage
from pipeline.core.config import MachinesScenario, Params
from pipeline.errors import UserError
from pipeline.interactive.logs.growth import grown
from pipeline.progress import no_progress
from pipeline.stages import champions, generate, heuristics

SITE: dict[str, Any] = {
    "problem": "machines",
    "machines": [{"count": 1, "has": {"cpu": 8}}],
    "slots": 10,
    "dispatch": "greedy",
    "policies_know": "durations",
    "pause": 16,
    "time_limit": 100000,
    "loads": [30],
    "jobsets": {"train": 2, "validation": 2, "test": 40},
}
JUDGED = 1600  # jobs, of which the last quarter is the test period


def jobs(rng: np.random.Generator, count: int, gap: float, run: float, begin: float, user: int = 1) -> list[str]:
    """Lines of jobs of one to eight processors; run times are log-normal."""
    submit = begin + np.cumsum(rng.exponential(gap, count))
    runs, sizes = rng.lognormal(np.log(run), 1.2, count), rng.choice([1, 2, 4, 8], count)
    return [
        line(k, submit=int(at), run=max(int(length), 1), allocated=int(size), user=user)
        for k, (at, length, size) in enumerate(zip(submit, runs, sizes, strict=True), start=int(begin) + 1)
    ]


def log(path: str, *parts: list[str]) -> Path:
    Path(path).write_text("\n".join(["; MaxProcs: 8", *(one for part in parts for one in part)]) + "\n")
    return Path(path)


@pytest.fixture
def old() -> list[str]:
    return jobs(np.random.default_rng(1), JUDGED, gap=600.0, run=300.0, begin=0.0)


@pytest.fixture
def site(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: list[str]) -> Params:
    """A site whose champion is first come, first served: in its log no job waits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    workload = {"name": "log", "format": "swf", "path": str(log("site.swf", old)), "window": 10}
    row = MachinesScenario.model_validate_json(json.dumps({**SITE, "workload": workload}))
    found = params.model_copy(update={"scenarios": {"site": row}, "agents": {}, "transfers": {}})
    storage.link_log(found)
    generate.run(found, "site")
    heuristics.run(found, "site")
    seat = PolicyRef(policy="fcfs", digest=digest_of_tuned("fcfs", {}), verdict="what the site runs")
    CHAMPIONS.write_text(with_line("", "site", promoted(None, seat)))
    return found


def end_of(rows: list[str]) -> float:
    return float(rows[-1].split()[1])


def test_it_is_silent_while_the_log_goes_on_as_it_was(site: Params, old: list[str]) -> None:
    more = jobs(np.random.default_rng(2), 1000, gap=600.0, run=300.0, begin=end_of(old))
    code, found, said = champions.watch(site, log("grown.swf", old, more), None)
    assert code == QUIET
    assert said[0].startswith("watch: site: fcfs: ")
    assert "no alarm in 100 windows" in said[0]
    assert [found[key] for key in ("scenario", "champion", "verdict", "windows")] == ["site", "fcfs", "no alarm", 100]
    regrets = [100 * float(str(found[key])) for key in ("mean_regret", "mean_regret_when_judged")]
    assert [float(number) for number in re.findall(r" ([+-][\d.]+) % in ", said[1])] == [round(r, 1) for r in regrets]


def test_a_change_that_matters_is_an_alarm_and_explained(site: Params, old: list[str]) -> None:
    more = jobs(np.random.default_rng(2), 1000, gap=100.0, run=300.0, begin=end_of(old), user=2)
    code, _, said = champions.watch(site, log("grown.swf", old, more), "site")
    assert code == ALARM, said
    assert "ALARM: its mean regret is above " in said[0]
    (jobs_a_day,) = (one for one in said if one.startswith("watch: jobs a day: "))
    now, before = (float(word) for word in jobs_a_day.removeprefix("watch: jobs a day: ").split(", when judged "))
    assert now > 4 * before
    assert "watch: part of the jobs by users who had none before: 1, when judged 0" in said


def test_a_change_that_does_not_matter_is_told_and_no_alarm(site: Params, old: list[str]) -> None:
    more = jobs(np.random.default_rng(2), 1000, gap=1200.0, run=100.0, begin=end_of(old), user=2)
    code, _, said = champions.watch(site, log("grown.swf", old, more), "site")
    assert code == QUIET
    assert any(one.startswith("watch: median run time in s: ") for one in said)


@pytest.mark.parametrize(("count", "windows"), [(0, 0), (5, 0), (30, 3)])
def test_of_too_few_windows_it_says_how_many_more_days(site: Params, old: list[str], count: int, windows: int) -> None:
    more = jobs(np.random.default_rng(2), count, gap=600.0, run=300.0, begin=end_of(old))
    code, _, said = champions.watch(site, log("grown.swf", old, more), "site")
    assert code == CANNOT_TELL
    assert f"cannot tell: {windows} windows of " in said[0]
    assert int(said[0].split("about ")[1].split()[0]) > 0


def test_the_new_windows_are_at_the_loads_that_the_judged_ones_had(site: Params, old: list[str]) -> None:
    more = jobs(np.random.default_rng(2), 300, gap=600.0, run=300.0, begin=end_of(old))
    found = grown(site, "site", log("grown.swf", old, more), no_progress)
    workload = found.params.scenario("site").workload
    assert found.jobs == 300
    learned = site.scenario("site").workload.train_share * JUDGED  # type: ignore[union-attr]
    assert workload.train_share * (JUDGED + 300) == pytest.approx(learned)  # type: ignore[union-attr]


def test_nothing_is_left_behind(site: Params, old: list[str]) -> None:
    before = sorted(Path().rglob("*"))
    champions.watch(site, Path("site.swf"), "site")
    assert sorted(Path().rglob("*")) == before


def test_what_cannot_be_watched_is_one_line(site: Params, old: list[str]) -> None:
    other = log("other.swf", jobs(np.random.default_rng(9), 30, gap=60.0, run=30.0, begin=0.0))
    with pytest.raises(UserError, match=r"^other\.swf: expected the log that the champion was judged on, grown; it "):
        champions.watch(site, other, "site")
    recipe = site.model_copy(
        update={"scenarios": {"online": site.scenario("site").model_copy(update={"workload": None})}}
    )
    with pytest.raises(UserError, match=r"^watch: scenario 'online' is not cut from a log; cut from one: none"):
        champions.watch(recipe, other, "online")
    line = champions_in(CHAMPIONS.read_text())["site"]
    CHAMPIONS.write_text("# Nobody yet.\n")
    with pytest.raises(UserError, match=r"^champions\.yaml: scenario 'site' has no champion: 'python -m pipeline prom"):
        champions.watch(site, Path("site.swf"), None)
    CHAMPIONS.write_text(with_line("", "site", Champion(**{**line.model_dump(), "policy": "fcfss"})))
    with pytest.raises(UserError, match=r"^champions\.yaml: site: unknown policy 'fcfss'; there are: "):
        champions.watch(site, Path("site.swf"), None)
