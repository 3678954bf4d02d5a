"""`site` and `advise`: from a log to what a program and a person read of it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from commands import Command
from swf_lines import line

from pipeline.core import storage
from pipeline.core.config import Params, load_params
from pipeline.core.schemas import TRIAL
from pipeline.errors import UserError
from pipeline.problems.machines.agents.learning import LEARNING
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.stages import advise, log, site

DAY = 86_400


def busy(folder: Path) -> Path:
    """Sixty days in which short narrow jobs wait behind long wide ones, and every tenth job is overestimated."""
    rng = np.random.default_rng(5)
    rows, at = [], 0
    for number in range(2_400):
        wide = rng.random() < 0.2
        run = int(rng.integers(20_000, 40_000)) if wide else int(rng.integers(20, 900))
        size, user = 3 if wide else 1, int(rng.integers(6))
        rows.append(line(number + 1, submit=at, run=run, allocated=size, estimate=run * 2, user=user))
        at += int(rng.exponential(60 * DAY / 2_400))
    path = folder / "busy.swf"
    path.write_text("; MaxProcs: 6\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a site was written into params.yaml and advised, with an agent that learned nothing."""
    root = tmp_path_factory.mktemp("advised")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        shutil.copy(REPOSITORY / "params.yaml", root)
        site.run(load_params(), busy(root), "mine", None, [], sure=True)  # busier than 6 processors
        params = load_params()
        log.run(Params.model_validate(params.model_copy(update={"scenarios": {"mine": params.scenarios["mine"]}})))
        learn_nothing(params, root)
        advise.run(params, "mine")
    return root


def learn_nothing(params: Params, root: Path) -> None:
    """Write the agent's model as it is before it learns."""
    from pipeline.stages import generate

    generate.run(params, "mine")
    agent = params.agents["mine_ppo"]
    task = LEARNING.task(params, "mine_ppo", agent.finetune)
    network = LEARNING.untrained(params, "mine_ppo", task)
    storage.write_model(storage.model_folder("mine_ppo", "policy"), LEARNING.model(params, "mine_ppo", network))


def test_programs_read_the_advice_as_a_list(advised: Path) -> None:
    (found,) = json.loads((advised / "reports/advice.json").read_text())
    assert list(found) == ["scenario", "policy", "learned", "against", "mean", "p99", "n", "period"]
    assert (found["scenario"], found["learned"], found["against"]) == ("mine", False, "fcfs")
    assert set(found["mean"]) == set(found["p99"]) == {"change", "low", "high"}
    assert found["mean"]["low"] <= found["mean"]["change"] <= found["mean"]["high"] <= 0
    assert found == json.loads((advised / "reports/advice/mine/advice.json").read_text())[0]


def test_the_change_is_that_of_the_jobs_of_the_test_period(advised: Path) -> None:
    """By nothing of the project's: means of the kept table."""
    (found,) = json.loads((advised / "reports/advice.json").read_text())
    played = TRIAL.validate(pd.read_parquet(advised / "reports/advice/mine/trial.parquet"))
    test = played[played["period"] == "test"].groupby("policy")["bounded_slowdown"].mean()
    assert found["policy"] != "fcfs"
    assert found["mean"]["change"] == pytest.approx(test[found["policy"]] / test["fcfs"] - 1, abs=1e-4)
    validation = played[(played["period"] == "validation") & (played["load"] == 1.0)]
    means = validation[validation["policy"] != "mine_ppo"].groupby("policy")["bounded_slowdown"].mean()
    assert found["policy"] == means.idxmin()


def test_both_periods_are_played_whole_by_all(advised: Path) -> None:
    played = pd.read_parquet(advised / "reports/advice/mine/trial.parquet")
    jobs = played.groupby(["period", "load", "policy"])["job"].nunique().unstack("policy")
    assert jobs.loc[("test", 1.0)].unique().tolist() == [960]  # the last 40 % of 2,400
    assert jobs.loc[("validation", 1.0)].unique().tolist() == [480]
    assert jobs.loc[("validation", 1.2)].drop("mine_ppo").unique().tolist() == [480]
    rules = set(HEURISTICS) - {"random", "tetris"}
    assert set(played["policy"]) == rules | {f"{rule}+predictions" for rule in rules} | {"mine_ppo"}
    assert not np.isnan(played["wait"]).any()


def test_the_same_trial_has_the_same_bytes_and_the_page_can_be_renewed(
    advised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(advised)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    names = ("reports/advice.json", "reports/advice.html", "reports/advice/mine/trial.parquet")
    before = [(advised / name).read_bytes() for name in names]
    advise.run(load_params(), "mine")
    assert [(advised / name).read_bytes() for name in names] == before
    (advised / "reports/advice.html").unlink()
    advise.renew(load_params())
    assert (advised / "reports/advice.html").read_bytes() == before[1]


def test_a_site_that_is_not_there_is_named(params: Params) -> None:
    with pytest.raises(UserError, match="unknown site 'mine'; 'python -m pipeline site LOG' writes one"):
        advise.run(params, "mine")


def test_a_site_whose_agent_is_of_another_scenario_is_refused(advised: Path, place: Path, command: Command) -> None:
    text = (advised / "params.yaml").read_text()
    (place / "params.yaml").write_text(text.replace("agent: mine_ppo", "agent: deeprm"))
    done = command("advise", "mine")
    assert done.code == 2
    wanted = "params.yaml: sites.mine.agent: expected one of scenario 'mine', 'deeprm' is of 'online'"
    assert done.err.strip() == f"error: {wanted}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "site.swf: expected jobs, found an empty log"),
        ("; MaxProcs: 6\n" + line(1) + "\n", "cannot tell: of 0.0 days of log"),
        ("; MaxProcs: 6\n" + line(1, run=-1) + "\n", "site.swf"),
        ("job,arrival\n1,2\n", "site.swf:1: expected 18 numbers, found 1"),
    ],
)
def test_a_log_that_tells_nothing_is_refused_and_params_yaml_stays(
    place: Path, command: Command, text: str, said: str
) -> None:
    (place / "site.swf").write_text(text)
    before = (place / "params.yaml").read_bytes()
    done = command("site", "site.swf")
    assert done.code == 2
    assert said in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("error: ")
    assert (place / "params.yaml").read_bytes() == before
