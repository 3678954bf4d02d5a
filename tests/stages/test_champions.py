"""`promote` and `rollback`: only a current verdict allows a change, and otherwise the champion stays."""

import json
from pathlib import Path

import pytest
from commands import Command

from pipeline.champions.gate import Verdict
from pipeline.champions.lines import Champion, PolicyRef, champions_in

HOLD = PolicyRef(policy="hold", digest="ab", tuned={"hold": 10.0}, verdict="there was none")
LEARNED = PolicyRef(policy="deeprm3", digest="cd.dir", verdict="against hold -5.0 % over all loads")
HEAD = "# Who is champion.\n"


@pytest.fixture
def lines(place: Path) -> Path:
    (place / "champions.yaml").write_text(HEAD)
    return place / "champions.yaml"


def judge(place: Path, **verdicts: Verdict) -> None:
    (place / "reports").mkdir(exist_ok=True)
    rows = {name: one.model_dump(mode="json") for name, one in verdicts.items()}
    (place / "reports" / "gate.json").write_text(json.dumps(rows))


def test_who_passed_is_champion_and_the_one_before_comes_back(place: Path, lines: Path, command: Command) -> None:
    stays = Verdict(champion=None, stays="sjf", reasons={"controller": ["+3.0 % over all loads", "more"]})
    judge(place, online=Verdict(champion=None, promote=HOLD, stays="hold"), shares=stays)
    said = command("promote")
    assert said.out == "online: hold: there was none\nshares: sjf stays (controller: +3.0 % over all loads)\n"
    judge(place, online=Verdict(champion=HOLD, promote=LEARNED))
    before = lines.read_text()
    assert json.loads(command("promote", "--json").out)["online"]["promote"]["policy"] == "deeprm3"
    lines.write_text(before)
    assert command("promote", "online").out == f"online: deeprm3 in place of hold: {LEARNED.verdict}\n"
    assert champions_in(lines.read_text()) == {"online": Champion(**LEARNED.model_dump(), previous=HOLD)}
    judged = lines.read_text()
    both = {"scenario": "online", "champion": "hold", "before": "deeprm3"}
    assert json.loads(command("rollback", "online", "--json").out) == both
    lines.write_text(judged)
    assert command("rollback", "online").out.startswith("online: hold restored; deeprm3 will not be promoted again")
    assert champions_in(lines.read_text()) == {"online": Champion(**HOLD.model_dump(), rolled_back=("cd.dir",))}
    assert lines.read_text().startswith(HEAD)


def test_nobody_is_said_to_be_champion_before_that_is_written(place: Path, lines: Path, command: Command) -> None:
    judge(place, online=Verdict(champion=None, promote=HOLD, stays="hold"), shares=Verdict(champion=HOLD, stays="sjf"))
    said = command("promote")  # the second verdict is outdated
    assert (said.code, said.out) == (2, "")
    assert lines.read_text() == HEAD


@pytest.mark.parametrize(
    ("words", "verdict", "said"),
    [
        ("promote online", None, "reports/gate.json is missing: run 'dvc repro' (or 'dvc pull') first"),
        ("promote onlin", Verdict(champion=None), "unknown scenario 'onlin'; there are: "),
        ("promote streams", Verdict(champion=None), "reports/gate.json: no verdict on scenario 'streams': run 'dvc re"),
        (
            "promote online",
            Verdict(champion=None, stays="sjf"),
            "reports/gate.json: online: no candidate passed the gate: sj",
        ),
        (
            "promote",
            Verdict(champion=HOLD, promote=LEARNED),
            "reports/gate.json: online: judged against another champi",
        ),
        ("promote", Verdict(champion=None, promote=LEARNED), "reports/gate.json: online: deeprm3 has another model no"),
        ("rollback online", None, "champions.yaml: scenario 'online' has no champion to roll back\n"),
    ],
)
def test_what_cannot_be_promoted_is_one_line_and_changes_nothing(
    place: Path, lines: Path, command: Command, words: str, verdict: Verdict | None, said: str
) -> None:
    if verdict is not None:
        judge(place, online=verdict)
    model = place / "models" / "deeprm3" / "policy"
    model.mkdir(parents=True)
    (model / "policy.json").write_text("another")
    found = command(*words.split())
    assert found.code == 2
    assert found.err.startswith(f"error: {said}")
    assert found.err.count("\n") == 1
    assert lines.read_text() == HEAD
