"""The example in docs/how-to/advise-a-site.md matches the commands' answers for HPC2N."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import REPOSITORY
from swf_lines import HPC2N

from pipeline.core.config import Backfilling, Params, load_params
from pipeline.report.advice import sentence
from pipeline.sites.advice import advise, waits_of
from pipeline.sites.evidence import SiteLog, evidence, limits_table
from pipeline.stages import log, site
from pipeline.stages.when import answer_what_if as what_if

PAGE = (REPOSITORY / "docs/how-to/advise-a-site.md").read_text()
PROSE = " ".join(PAGE.split())
ROWS = {"mean wait": "wait", "99th percentile of waits": "p99_wait", "longest wait": "longest_wait"}

pytestmark = pytest.mark.skipif(not HPC2N.is_file(), reason=f"the log is not at {HPC2N}")


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "params.yaml", tmp_path)
    site.run(load_params(), HPC2N, "ours", None, [])
    found = load_params()
    log.run(Params.model_validate(found.model_copy(update={"scenarios": {"ours": found.scenarios["ours"]}})))
    return found


def test_the_page_has_the_numbers_of_hpc2n(params: Params) -> None:
    """Within two percentage points, since other processors round logarithms differently."""
    own, row = SiteLog(params, "ours"), params.sites["ours"]
    advice = advise(own.periods, row, params.evaluation, params.seed, 2, lambda _: None)
    found: Any = evidence("ours", row.today, advice, own, limits_table(own.periods["test"]))
    assert f"the candidate is `{found['candidate']}`" in PROSE
    assert f"The verdict is `{found['verdict']}`: {found['n']} blocks" in PROSE
    gaining, losing, users = (found["users"][name] for name in ("gain", "lose", "all"))
    assert f"{gaining} of {users} users gain and {losing} lose" in PROSE
    for what, name in (ROWS | {"mean bounded slowdown": "slowdown"}).items():
        (said,) = re.findall(rf"^\| {what}.*? \| ([+-]\d+) % \| ([+-]\d+) to ([+-]\d+)", PAGE, re.MULTILINE)
        exact = [100 * found[name][end] for end in ("change", "low", "high")]
        assert [float(number) for number in said] == pytest.approx(exact, abs=2)
    (printed,) = re.findall(r"\nours: (.*?)\n```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    printed = " ".join(printed.split())
    number = r"[+-]?\d+(?:\.\d+)?"
    assert re.sub(number, "", printed) == re.sub(number, "", sentence(found))
    assert [float(one) for one in re.findall(number, printed)] == pytest.approx(
        [float(one) for one in re.findall(number, sentence(found))], abs=2
    )
    assert advice.learned is not None
    weights = re.findall(r"The score became ([\d.]+) ln\(limit\) \+ ([\d.]+) ln\(CPUs\) \+ ([\d.]+) ln\(", PROSE)[0]
    assert [float(weight) for weight in weights] == pytest.approx(advice.learned[1:4], abs=0.1)
    chosen = {one.name: one for one in advice.validation}
    gains = {"learned_8h": -54, "limit_8h": -30, "learned_1h": -25}
    assert {name: 100 * chosen[name].figures["gain"].change for name in gains} == pytest.approx(gains, abs=2)
    assert {name: bool(chosen[name].vetoes) for name in gains} == {name: name == "learned_8h" for name in gains}
    late = advice.test["learned_8h"].figures
    assert [100 * late[name].change for name in ("wait", "longest_wait")] == pytest.approx([-37, 11], abs=8)
    saf = advice.test["saf"].figures
    assert f"(`saf`: mean wait {100 * saf['wait'].change:.0f} %)" in PROSE
    assert saf["longest_wait"].change > 1  # it more than doubles


def test_the_page_has_the_numbers_of_one_reservation(params: Params) -> None:
    """EASY with the other limits of Slurm's defaults, against Slurm's backfill."""
    row = params.sites["ours"].model_copy(update={"backfill": Backfilling(reservations=1)})
    easy = SiteLog(params.model_copy(update={"sites": {"ours": row}}), "ours").periods
    found = advise(easy, row, params.evaluation, params.seed, 2, lambda _: None)
    with ThreadPoolExecutor(2) as workers:
        slurms = waits_of(SiteLog(params, "ours").periods["test"], "fcfs", workers)
    one, better = (found.test[name].figures for name in ("fcfs", "limit_8h"))
    (said,) = re.findall(r"a mean wait of ([\d,]+) instead of ([\d,]+) s and a longest wait (\d+) % longer", PROSE)
    means = [float(number.replace(",", "")) for number in said[:2]]
    assert means == pytest.approx([one["wait"].value, slurms.mean()], rel=0.01)
    longer = one["longest_wait"].value / slurms.max(axis=1).mean() - 1
    assert float(said[2]) == pytest.approx(100 * longer, abs=2)
    (verdict, candidate, *said) = row_of("HPC2N, EASY")
    exact = [better["wait"].change, better["wait"].low, better["wait"].high]
    exact += [better[name].change for name in ("slowdown", "p99_wait", "longest_wait")]
    assert [float(number) for number in said] == pytest.approx([100 * end for end in exact], abs=2)
    assert (found.candidate, found.verdict) == (candidate, verdict)


def row_of(name: str) -> tuple[str, ...]:
    """Return the verdict, the candidate and the changes of a log's row."""
    number = r"([+-]\d+)"
    cells = rf"`(\w+)` \| `(\w+)` \| {number} % \({number} to {number}\)" + rf" \| {number} %" * 3
    (found,) = re.findall(rf"^\| {name} \| {cells} \|$", PAGE, re.MULTILINE)
    return tuple(found)


@pytest.mark.parametrize("name", ["KTH", "KTH, EASY", "Atlas"])
def test_the_page_has_the_changes_of_other_logs(name: str) -> None:
    kept = pd.read_csv(REPOSITORY / "docs/results/intervals/other_logs.csv").set_index(["log", "order"])
    _, candidate, wait, _, _, *said = row_of(name)
    row = kept.loc[(name, candidate)]
    exact = [row[f"{one}_change"] for one in ("wait", "slowdown", "p99_wait", "longest_wait")]
    assert [wait, *said] == [f"{100 * one:+.0f}" for one in exact]
    runner_up = kept.loc[("KTH", "area_2h")]
    assert f"`area_2h`, is not vetoed (mean wait {100 * runner_up['wait_change']:+.0f} %)" in PROSE
    assert pd.isna(runner_up["vetoes"])
    idle = kept.loc[("Atlas", "validation: fcfs"), "wait"]
    assert f"validation period has a mean wait of {idle:.1f} s" in PROSE


@pytest.mark.parametrize(("change", "said"), [("nodes=+10%", "23 % (-37 to -6)"), ("limit=12h", "32 % (-47 to -9)")])
def test_the_page_has_the_answers_of_what_if(params: Params, change: str, said: str) -> None:
    assert said in PROSE
    data, answer = what_if(params, "ours", change, None)
    (found,) = re.findall(r", ([+-][\d.]+) % \(([+-][\d.]+) to ([+-][\d.]+)\); 99th", answer)
    by, low, high = re.findall(r"[-\d]+", said)
    assert [-float(by), float(low), float(high)] == pytest.approx([float(number) for number in found], abs=2)
    wait: Any = data["wait_s"]
    assert [float(number) for number in found] == [round(100 * wait[end], 1) for end in ("change", "low", "high")]
