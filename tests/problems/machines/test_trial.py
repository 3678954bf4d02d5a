"""A site's log under every policy: what each knows of run times, by hand, and what is kept of an interrupted trial."""

from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML
from swf_lines import line

from pipeline.core import storage
from pipeline.core.config import Params, check_params
from pipeline.execution.executor import executor
from pipeline.problems.machines import trial as module
from pipeline.problems.machines.heuristics.rules import HEURISTICS

APART_S, GROUPS = 10_000, 100


def triples(path: Path, limit: int) -> Path:
    """Groups of three jobs on four processors: the second waits for the first, and the third, if it lasts as long as
    its limit of 200 s says, would delay the second: EASY starts it behind. It runs for 50 s, so that it fits before."""
    rows = []
    for group in range(GROUPS):
        at, number = group * APART_S, 3 * group
        rows += [
            line(number + 1, submit=at, run=100, allocated=3, estimate=min(limit, 100), user=1),
            line(number + 2, submit=at + 1, run=100, allocated=4, estimate=min(limit, 100), user=2),
            line(number + 3, submit=at + 2, run=50, allocated=1, estimate=limit, user=3),
        ]
    path.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which only fcfs and an agent that orders by requested run time are tried."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "HEURISTICS", {"fcfs": HEURISTICS["fcfs"]})
    monkeypatch.setattr(module, "policy_by_name", lambda *_: HEURISTICS["fcfs"])
    storage.model_folder("mine_ppo", "policy").mkdir(parents=True)
    return tmp_path


def site(folder: Path, knows: str, limit: int = 200) -> Params:
    raw: Any = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    log = triples(folder / "log.swf", limit)
    raw["scenarios"]["mine"] = {
        **{"problem": "machines", "machines": [{"count": 1, "has": {"cpu": 4}}], "slots": 10, "loads": [3]},
        **{"dispatch": "easy_dynamic", "policies_know": knows, "pause": 16, "time_limit": 1000000},
        "workload": {"name": "log", "format": "swf", "path": str(log), "window": 10}
        | {"train_share": 0.4, "validation_share": 0.2},
        "jobsets": {"train": 1, "validation": 1, "test": 1},
    }
    raw["agents"]["mine_ppo"] = {**raw["agents"]["deepk8s_ppo"], "scenario": "mine"}
    raw["agents"]["mine_ppo"]["finetune"] = {**raw["agents"]["mine_ppo"]["finetune"], "loads": [3]}
    raw["sites"] = {"mine": {"today": "fcfs", "agent": "mine_ppo", "warm_up_days": 0}}
    place = storage.scenario_log("mine") / "log"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(log)
    return check_params(raw, "params.yaml")


def mean_waits(params: Params) -> dict[str, float]:
    """Mean wait of each policy in the test period at the log's own load."""
    with executor(1) as workers:
        played = module.trial(params, "mine", workers).played
    test = played[(played["period"] == "test") & (played["load"] == 1.0)]
    return {str(name): float(wait) for name, wait in test.groupby("policy")["wait"].mean().items()}


@pytest.mark.parametrize("knows", ["estimates", "predictions", "durations"])
def test_what_runs_today_knows_the_requested_limits_whatever_the_row_says(here: Path, knows: str) -> None:
    """By limits the three wait 0, 99 and 198 s, 99 in the mean; started before the second, the third waits for nothing:
    33 in the mean. Predictions are of jobs that are all like these."""
    found = mean_waits(site(here, knows))
    assert found["fcfs"] == pytest.approx(99)
    assert found["fcfs+predictions"] == pytest.approx(33)
    assert found["mine_ppo"] == pytest.approx(33 if knows == "predictions" else 99)  # of exact run times none has more


def test_a_log_without_limits_leaves_exact_run_times_and_says_so(here: Path) -> None:
    params = site(here, "durations", limit=-1)
    with executor(1) as workers:
        assert not module.trial(params, "mine", workers).limits
    assert mean_waits(params) == {"fcfs": pytest.approx(33), "mine_ppo": pytest.approx(33)}


def test_plays_that_were_done_before_an_interrupt_are_not_played_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten plays: of fcfs with limits and with predictions, two periods and two more loads, and two of the agent."""
    params, played, real, most = site(here, "estimates"), list[module.Play](), module._played, [5]

    def counted(play: module.Play, **how: Any) -> module.Outcomes:
        if len(played) == most[0]:
            raise KeyboardInterrupt
        played.append(play)
        return real(play, **how)

    counted.__module__, counted.__qualname__ = real.__module__, real.__qualname__  # what the key is made of
    whole = mean_waits(params)
    monkeypatch.setattr(module, "_played", counted)
    with pytest.raises(KeyboardInterrupt):
        mean_waits(params)
    most[0] = 100
    assert mean_waits(params) == whole
    assert len(played) == len(set(played)) == 10
    assert list((here / ".cache/tasks").glob("*.task")) == []
