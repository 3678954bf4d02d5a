"""The gate for a site gives the same answer as the advice, whatever windows of 200 jobs suggest."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import params as read_params
from dvc.repo import Repo
from log_scenarios import log_scenario
from swf_lines import line

from pipeline.champions.gate import NOT_REPLAYED, Advised, Verdict
from pipeline.champions.lines import CHAMPIONS, PolicyRef, champions_in, promoted, rolled_back, with_line
from pipeline.core import storage
from pipeline.core.config import MachinesScenario, Params, Site
from pipeline.errors import UserError
from pipeline.problems.machines.env.tables import JOBSET_RESULTS
from pipeline.report.advice import answer, sentence
from pipeline.stages import advise, champions, gate, generate, heuristics, log
from pipeline.tracking.digests import measured

DAY, AGENT = 86_400, "mine_ppo"
STAY = Advised(
    scenario="mine",
    verdict="undecided",
    policy="fcfs",
    candidate="limit_8h",
    vetoes={"sjf": "the longest wait grows by 101 %"},
)
USE = Advised(scenario="mine", verdict="use", policy="limit_8h", candidate="limit_8h", vetoes={})
SAID = "the advice on the whole log: stay with fcfs (limit_8h: undecided)"
MISSING = "the advice for the site is missing: 'dvc repro advise@mine' makes it"
SJF = PolicyRef(policy="sjf", digest="of before", verdict="the best heuristic on validation jobsets")


def small(folder: Path) -> MachinesScenario:
    """Fifty days with 300 jobs on 4 processors, in windows of 12 jobs."""
    rng = np.random.default_rng(7)
    submit, run = np.sort(rng.integers(0, 50 * DAY, 300)), rng.choice([600, 3_600, 30_000, 60_000], 300)
    rows = zip(submit.tolist(), run.tolist(), rng.integers(1, 4, 300).tolist(), strict=True)
    lines = [line(k + 1, submit=a, run=b, allocated=c, estimate=2 * b, user=k % 4) for k, (a, b, c) in enumerate(rows)]
    (folder / "small.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    cut = {"window": 12, "accept": ["load", "size"]}
    jobsets = {"train": 1, "validation": 4, "test": 10}
    return MachinesScenario.model_validate(log_scenario(4.0, folder / "small.swf", cut, slots=12, jobsets=jobsets))


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Params]]:
    """A folder with a site's scenario, and an agent whose slowdown above 1 is a third of that of fcfs."""
    root, whole = tmp_path_factory.mktemp("scored"), read_params()
    agent = whole.agents["deepk8s_ppo"].model_copy(update={"scenario": "mine"})
    none = {key: {} for key in ("transfers", "plans", "policies")}
    found = whole.model_copy(
        update={
            **none,
            "scenarios": {"mine": small(root)},
            "agents": {AGENT: agent},
            "sites": {"mine": Site()},
            "gate": whole.rules.model_copy(update={"fewer": {"mine": 10}}),
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        with Repo.init(str(root), no_scm=True):
            pass
        log.run(found)
        generate.run(found, "mine")
        heuristics.run(found, "mine")
        frame = pd.read_parquet(storage.results_folder("heuristics", "mine") / "jobsets.parquet")
        mine = frame[frame["policy"] == "fcfs"].assign(policy=AGENT)
        for name in [name for name in mine if "slowdown" in name]:
            mine[name] = 1 + (mine[name] - 1) / 3
        place = storage.results_folder("agents", AGENT)
        storage.write_table(place / "jobsets.parquet", mine, JOBSET_RESULTS)
        storage.write(storage.model_folder(AGENT, "policy") / "policy.json", b"{}")
        yield root, found


@pytest.fixture
def here(scored: tuple[Path, Params], monkeypatch: pytest.MonkeyPatch) -> Params:
    """The folder without a champion or advice; sjf is by far the best on validation jobsets."""
    root, params = scored
    monkeypatch.chdir(root)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    chosen = storage.read_chosen("mine")
    storage.write_chosen("mine", chosen.model_copy(update={"validation": chosen.validation | {"sjf": {100: 1.0}}}))
    CHAMPIONS.write_text("")
    storage.discard(storage.results_folder("advice", "mine"))
    return params


def judged(params: Params, advice: Advised | None, without: str = "", champion: PolicyRef | None = None) -> Verdict:
    """Return the gate's verdict on the site; `without` names an agent to leave out."""
    if advice:
        place = storage.results_folder("advice", "mine") / advise.ADVICE
        storage.write_json(place, advice.model_dump(mode="json"))
    if champion:
        CHAMPIONS.write_text(with_line("", "mine", promoted(None, champion)))
    gate.run(
        params.model_copy(update={"agents": {name: row for name, row in params.agents.items() if name != without}})
    )
    return Verdict.model_validate(json.loads(gate.VERDICTS.read_text())["mine"])


def test_the_first_champion_of_a_site_is_the_advised_order_and_no_other_heuristic_passes(here: Params) -> None:
    found = judged(here, STAY, without=AGENT)
    assert found.promote is not None
    assert (found.promote.policy, found.promote.verdict, found.advice) == ("fcfs", SAID, SAID)
    assert found.reasons["sjf"][0] == f"{SAID}; sjf: the longest wait grows by 101 %"
    assert found.line == f"fcfs: {SAID}"


def test_advice_to_use_an_order_that_the_gate_cannot_replay_leaves_no_champion(here: Params) -> None:
    found, use = judged(here, USE), "the advice on the whole log: use limit_8h"
    assert (found.promote, found.stays) == (None, "")
    assert found.reasons[AGENT][0] == f"{use}; the gate cannot replay limit_8h"
    assert found.line == f"no champion ({AGENT}: {found.reasons[AGENT][0]})"
    adopted = USE.model_copy(update={"verdict": "stay"})
    assert judged(here, adopted).reasons[AGENT][0].startswith("the advice on the whole log: stay with limit_8h; the")


def test_without_advice_nothing_is_promoted_and_the_line_names_the_command(here: Params) -> None:
    for without in ("", AGENT):
        found = judged(here, None, without)
        assert (found.promote, found.advice) == (None, MISSING)
        assert found.line.count(MISSING) == 1


def test_an_agent_is_judged_by_windows_and_its_verdict_says_what_they_cannot_show(here: Params) -> None:
    found = judged(here, STAY)
    assert found.promote is not None
    assert found.promote.policy == AGENT
    assert found.promote.verdict.startswith("against fcfs -")
    assert found.promote.verdict.endswith(f"; 10 independent jobsets a load, 10 are needed; {NOT_REPLAYED}")
    assert found.line.endswith(f"{NOT_REPLAYED}; {SAID}")


def test_a_heuristic_champion_gives_way_to_the_advised_order(here: Params) -> None:
    found = judged(here, STAY, AGENT, SJF)
    assert found.promote is not None
    assert found.line == f"fcfs in place of sjf: {SAID}"
    stays = judged(here, USE, AGENT, SJF)
    assert stays.line == f"sjf stays (sjf: {gate.AGAINST}); the advice on the whole log: use limit_8h"


def test_neither_an_agent_nor_what_was_chosen_by_a_rollback_gives_way(here: Params) -> None:
    fcfs = judged(here, STAY, AGENT).promote
    assert fcfs is not None
    learned = PolicyRef(policy=AGENT, digest=measured(storage.model_folder(AGENT, "policy")), verdict="passed")
    found = judged(here, STAY, "", learned)
    assert found.line.startswith(f"{AGENT} stays (sjf: {SAID}")
    assert found.reasons["fcfs"][0].endswith("that it is not better by more than 1%")  # judged, because it is advised
    line = rolled_back(promoted(promoted(None, SJF), fcfs), "mine")
    CHAMPIONS.write_text(with_line("", "mine", line))
    assert judged(here, STAY, AGENT).promote is None


def test_a_site_with_too_few_test_jobsets_has_no_champion(here: Params) -> None:
    rules = here.rules.model_copy(update={"fewer": {"mine": 11}})
    found = judged(here.model_copy(update={"gate": rules}), STAY, AGENT)
    assert (found.promote, found.stays) == (None, "")
    assert found.line.startswith("no champion (sjf: ")


def test_a_verdict_by_other_advice_than_the_present_is_not_promoted(here: Params) -> None:
    judged(here, USE)
    storage.write_json(storage.results_folder("advice", "mine") / advise.ADVICE, STAY.model_dump(mode="json"))
    with pytest.raises(UserError, match=r"gate\.json: mine: judged by other advice than there is now: run 'dvc repro"):
        list(champions.promote(here, None))
    assert CHAMPIONS.read_text() == ""
    judged(here, STAY, AGENT)
    list(champions.promote(here, "mine"))
    assert champions_in(CHAMPIONS.read_text())["mine"].policy == "fcfs"


def test_advice_that_is_no_advice_is_one_line(here: Params) -> None:
    storage.write_json(storage.results_folder("advice", "mine") / advise.ADVICE, {"verdict": "use"})
    with pytest.raises(
        UserError, match=r"^reports/tables/advice/mine/verdict\.json: not what advise writes \(.*policy"
    ):
        gate.run(here)


def test_the_gate_reads_what_advise_writes(here: Params) -> None:
    advise.run(here, "mine")
    evidence = json.loads(Path("reports/advice/mine/evidence.json").read_text())
    found = gate.read_advice(here, "mine")
    assert found is not None
    assert {key: evidence[key] for key in ("verdict", "policy", "candidate")} == {
        "verdict": found.verdict, "policy": found.policy, "candidate": found.candidate
    }  # fmt: skip
    vetoed = {one["name"]: " and ".join(one["vetoes"]) for one in evidence["orders"] if one["vetoes"]}
    assert vetoed
    assert vetoed.items() <= found.vetoes.items()
    assert set(found.vetoes) == {*vetoed, *evidence["excluded"]}
    assert answer("mine", "sjf") == (evidence["policy"], sentence(evidence))
    assert answer("other", "sjf") == ("sjf", "the order of today; 'dvc repro advise@other' makes the advice")


def test_an_order_is_vetoed_by_the_test_period_or_else_by_the_validation_period() -> None:
    kept = {"scenario": "mine", "verdict": "stay", "policy": "fcfs", "candidate": "fcfs"}
    orders = [{"name": "saf", "vetoes": ["of the test"]}, {"name": "fcfs", "vetoes": []}]
    found = advise.for_gate({**kept, "excluded": {"sjf": ["one", "two"], "saf": ["other"]}, "orders": orders})
    assert found == {**kept, "vetoes": {"sjf": "one and two", "saf": "of the test"}}
