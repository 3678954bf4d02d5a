"""`gate`: a candidate's model is judged against the champion's own, taken from DVC's cache if it is nowhere else."""

import json
import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo

from pipeline.champions.gate import GATE, Verdict
from pipeline.champions.lines import CHAMPIONS, PolicyRef, champions_in, promoted, with_line
from pipeline.core import storage
from pipeline.core.config import Counts, Params
from pipeline.errors import UserError
from pipeline.problems.pool.agents.learning import LEARNING
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.stages import evaluate, gate, generate, heuristics
from pipeline.tracking.digests import measured

AGENT = "deeprm"
POLICY = Path("models/deeprm/policy")


@pytest.fixture
def few(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """One scenario with few jobsets, scored, and one untrained agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    with Repo.init(str(tmp_path), no_scm=True):
        pass
    row = params.pool_scenario("online").model_copy(
        update={"loads": (70, 130), "jobsets": Counts(train=2, validation=2, test=12)}
    )
    pool = params.heuristics.pool.model_copy(update={"linear": None, "hold_until": (50,)})
    rows = {
        "scenarios": {"online": row},
        "agents": {AGENT: params.agent(AGENT)},
        "transfers": {},
        "heuristics": params.heuristics.model_copy(update={"pool": pool}),
        "gate": params.rules.model_copy(update={"jobsets": 12}),
    }
    found = params.model_copy(update=rows)
    generate.run(found, "online")
    heuristics.run(found, "online")
    train(found, 0)
    CHAMPIONS.write_text("# Nobody yet.\n")
    return found


def train(params: Params, seed: int) -> None:
    """Give the agent random weights, and score them."""
    network = build(params.agent(AGENT).network, Cluster.of(params.pool_scenario("online")), seed)
    for which in ("pretrained", "policy"):
        storage.write_model(storage.model_folder(AGENT, which), LEARNING.model(params, AGENT, network))
    evaluate.run(params, AGENT)


def crown(seat: PolicyRef) -> None:
    CHAMPIONS.write_text(with_line(CHAMPIONS.read_text(), "online", promoted(None, seat)))


def verdict() -> Verdict:
    return Verdict.model_validate(json.loads(gate.VERDICTS.read_text())["online"])


def keep(folder: Path) -> None:
    """Put a folder into DVC's cache."""
    files = {path.name: path for path in sorted(folder.iterdir())}
    listing = json.dumps([{"md5": measured(path), "relpath": name} for name, path in files.items()]).encode()
    for md5, content in [
        (measured(folder), listing),
        *((measured(path), path.read_bytes()) for path in files.values()),
    ]:
        place = Path(".dvc/cache/files/md5") / md5[:2] / md5[2:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def test_a_scenario_without_a_champion_gets_the_best_heuristic(few: Params) -> None:
    gate.run(few)
    found, rows = verdict(), storage.read_table(gate.TABLE, GATE)
    assert found.champion is None
    assert found.promote is not None
    assert found.promote.policy in storage.read_chosen("online").validation
    assert set(rows["candidate"]) == {AGENT}
    before = gate.TABLE.read_bytes(), gate.VERDICTS.read_bytes()
    gate.run(few)
    assert (gate.TABLE.read_bytes(), gate.VERDICTS.read_bytes()) == before


def test_a_scenario_with_too_few_test_jobsets_gets_no_champion(few: Params) -> None:
    gate.run(few.model_copy(update={"gate": few.rules.model_copy(update={"jobsets": 13})}))
    found = verdict()
    assert (found.promote, found.stays) == (None, "")
    assert found.line.startswith("no champion (deeprm: 12 independent jobsets a load, 13 are needed")


def test_chance_is_nobodys_champion(few: Params) -> None:
    chosen = storage.read_chosen("online")
    lucky = dict.fromkeys(chosen.validation["random"], 1.0)
    storage.write_chosen("online", chosen.model_copy(update={"validation": chosen.validation | {"random": lucky}}))
    gate.run(few)
    verdict = json.loads(gate.VERDICTS.read_text())["online"]
    assert verdict["promote"]["policy"] not in ("random", None)


def test_an_agent_that_was_trained_again_is_judged_against_what_was_promoted(few: Params) -> None:
    crown(PolicyRef(policy=AGENT, digest=measured(POLICY), verdict="once the best"))
    old = storage.read_jobset_results(few, "online", gate.problem_of(few, "online").tables)
    keep(POLICY)
    train(few, 1)
    gate.run(few)
    rows = storage.read_table(gate.TABLE, GATE)
    assert set(rows["champion"]) == {f"{AGENT} (champion)"}
    assert AGENT in set(rows["candidate"])
    new = storage.read_jobset_results(few, "online", gate.problem_of(few, "online").tables)
    means = [frame[frame["policy"] == AGENT].groupby("load")["mean_slowdown"].mean().mean() for frame in (old, new)]
    over = rows[(rows["candidate"] == AGENT) & (rows["rule"] == "better")]["difference"].iloc[0]
    assert over == pytest.approx(means[1] / means[0] - 1, rel=1e-4)


def test_a_champion_with_other_numbers_plays_again_by_its_own(few: Params) -> None:
    crown(PolicyRef(policy="tetris", digest="of before", tuned={"tetris": 0.0}, verdict="once the best"))
    gate.run(few)
    assert set(storage.read_table(gate.TABLE, GATE)["champion"]) == {"tetris (champion)"}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            AGENT,
            r"models/deeprm/policy with md5 gone\.dir is neither here nor in DVC's cache: 'dvc fetch --all-commits'",
        ),
        ("sjff", r"unknown policy 'sjff'; there are: .*; did you mean 'sjf'\?"),
    ],
)
def test_a_champion_that_is_gone_is_one_line_and_nothing_is_written(few: Params, policy: str, said: str) -> None:
    crown(PolicyRef(policy=policy, digest="gone.dir", verdict="once the best"))
    shutil.rmtree(POLICY)
    storage.write_model(
        POLICY, LEARNING.model(few, AGENT, build(few.agent(AGENT).network, Cluster.of(few.pool_scenario("online")), 5))
    )
    with pytest.raises(UserError, match=rf"^champions\.yaml: online: {said}"):
        gate.run(few)
    assert not gate.VERDICTS.exists()
    assert champions_in(CHAMPIONS.read_text())["online"].digest == "gone.dir"


def test_without_rules_nothing_is_judged(few: Params) -> None:
    with pytest.raises(UserError, match=r"^params\.yaml: gate: missing key: rules must be declared"):
        gate.run(few.model_copy(update={"gate": None}))
