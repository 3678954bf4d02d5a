"""`site` and `advise`: from a log to results for programs and for people."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from commands import Command
from log_scenarios import log_scenario
from queue_builders import Job, queue
from swf_lines import line

from pipeline.core.config import MachinesScenario, Multifactor, Params, Partition, Site, load_params
from pipeline.core.schemas.tables import ORDERS
from pipeline.errors import UserError
from pipeline.sites.orders import FAMILIES, order_of
from pipeline.sites.orders import ORDERS as EVERY
from pipeline.sites.queue import backfill_of
from pipeline.sites.replay import Queue
from pipeline.stages import advise, log, site
from tests.oracles.queue import plain_replay

DAY = 86_400


def busy(folder: Path) -> Path:
    """Sixty days in which short narrow jobs wait for long wide ones; every limit is twice the run time."""
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
    """A folder in which a site was written into params.yaml and advised."""
    root = tmp_path_factory.mktemp("advised")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        shutil.copy(REPOSITORY / "params.yaml", root)
        site.run(load_params(), busy(root), "mine", None, [], sure=True)  # the log exceeds its 6 processors
        params = load_params()
        log.run(Params.model_validate(params.model_copy(update={"scenarios": {"mine": params.scenarios["mine"]}})))
        advise.run(params, "mine")
    return root


@pytest.fixture(scope="module")
def evidence(advised: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((advised / "reports/advice/mine/evidence.json").read_text())
    return found


@pytest.fixture(scope="module")
def orders(advised: Path) -> pd.DataFrame:
    return ORDERS.validate(
        pd.read_csv(advised / "reports/advice/mine/orders.csv", keep_default_na=False, na_values={"large_change": [""]})
    )


MEASURES = ("wait", "p99_wait", "longest_wait", "slowdown", "gain")


def test_programs_read_the_advice_as_a_list(advised: Path, evidence: dict[str, Any]) -> None:
    (found,) = json.loads((advised / "reports/advice.json").read_text())
    keys = ("scenario", "verdict", "policy", "candidate", "runner_up", "against")
    assert list(found) == [
        *keys, "gain", "wait", "p99_wait", "longest_wait", "slowdown", "vetoes", "n", "replays", "more_days", "period"
    ]  # fmt: skip
    assert (found["scenario"], found["against"], found["replays"], found["n"]) == ("mine", "fcfs", 12, 9)
    assert found["period"] == "the log's last 960 jobs, 9 blocks of three days"
    for name in MEASURES:
        assert set(found[name]) == {"value", "today", "change", "low", "high"}
        assert found[name]["low"] <= found[name]["change"] <= found[name]["high"]
    assert {name: evidence[name] for name in found} == found


def test_short_jobs_behind_long_ones_are_advised_to_go_first(evidence: dict[str, Any]) -> None:
    """In this log a family helps much, and an order without ageing makes some job wait much longer."""
    assert evidence["verdict"] == "use"
    assert evidence["policy"] == evidence["candidate"]
    assert evidence["candidate"] in FAMILIES
    assert evidence["gain"]["high"] < 0
    assert evidence["vetoes"] == []
    assert evidence["excluded"]


def test_the_table_has_every_order_on_both_periods(orders: pd.DataFrame, evidence: dict[str, Any]) -> None:
    assert orders["period"].tolist() == ["validation"] * len(EVERY) + ["test"] * len(EVERY)
    assert orders["order"].tolist() == 2 * list(EVERY)
    assert set(orders.loc[orders["for_slurm"], "order"]) == set(FAMILIES)
    today = orders[orders["order"] == "fcfs"]
    assert (today[[f"{name}_change" for name in MEASURES]] == 0).all(axis=None)
    row = orders[(orders["period"] == "test") & (orders["order"] == evidence["candidate"])].iloc[0]
    for name in MEASURES:
        assert row[f"{name}_change"] == pytest.approx(evidence[name]["change"], rel=1e-4)


def test_the_candidate_has_the_lowest_gain_of_the_families_without_a_veto_on_validation(
    orders: pd.DataFrame, evidence: dict[str, Any]
) -> None:
    rows = orders[(orders["period"] == "validation") & orders["for_slurm"] & (orders["vetoes"] == "")]
    assert evidence["candidate"] == rows.loc[rows["gain_change"].idxmin(), "order"]
    family = evidence["candidate"].split("_")[0]
    safe = set(orders[(orders["period"] == "test") & (orders["vetoes"] == "")]["order"])
    rows = rows[~rows["order"].str.startswith(family) & (rows["gain_change"] < 0)]
    best = rows.loc[rows["gain_change"].idxmin(), "order"] if len(rows) else ""
    assert evidence["runner_up"] == (best if best in safe else "")  # the test period confirms or drops it


def small(folder: Path) -> tuple[MachinesScenario, Queue]:
    """A log of 250 jobs in forty days, and its last 100 jobs and those of the week before as a queue."""
    rng = np.random.default_rng(7)
    submit = np.sort(rng.integers(0, 40 * DAY, 250))
    run, size = rng.choice([600, 3_600, 30_000, 60_000], 250), rng.integers(1, 4, 250)
    limit = run * rng.choice([1, 2, 5], 250)
    rows = list(zip(submit.tolist(), run.tolist(), size.tolist(), limit.tolist(), strict=True))
    lines = [line(k + 1, submit=a, run=b, allocated=c, estimate=d, user=k % 4) for k, (a, b, c, d) in enumerate(rows)]
    (folder / "small.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    row = log_scenario(4.0, folder / "small.swf", {"window": 20}, slots=8)
    begin = int(np.searchsorted(submit, submit[150] - 7 * DAY))
    jobs = [Job(float(a - submit[begin]), float(b), c, limit=float(d)) for a, b, c, d in rows[begin:]]
    return MachinesScenario.model_validate(row), queue([4], *jobs)


def test_the_changes_are_those_of_the_reference_s_replays(
    tmp_path: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    scenario, q = small(tmp_path)
    known = params.model_copy(update={"scenarios": {"mine": scenario}, "sites": {"mine": Site()}})
    log.run(known)
    advise.run(known, "mine")
    (found,) = json.loads((tmp_path / "reports/advice.json").read_text())
    jobs, seed = len(q.submit), params.seed
    submit = q.submit + np.random.default_rng([seed, 2]).uniform(-60, 60, (12, jobs))  # 2: the test period
    waits = {}
    for name in ("fcfs", found["candidate"]):
        order = order_of(name, q)
        arrivals, backfill = np.argsort(submit, axis=1, kind="stable"), backfill_of(Site())
        starts = [plain_replay(q, order, backfill, *pair).start for pair in zip(submit, arrivals, strict=True)]
        waits[name] = (np.array(starts) - submit)[:, -100:]
    run = q.run[-100:]
    measured = {
        name: {
            "wait": wait.mean(),
            "p99_wait": np.mean(np.quantile(wait, 0.99, axis=1, method="inverted_cdf")),
            "longest_wait": wait.max(axis=1).mean(),
            "slowdown": np.maximum((wait + run) / np.maximum(run, 10), 1).mean(),
        }
        for name, wait in waits.items()
    }
    assert found["candidate"] != "fcfs"
    for name, value in measured[found["candidate"]].items():
        today = measured["fcfs"][name]
        assert found[name]["value"] == pytest.approx(value, rel=1e-5)  # JSON has six digits
        assert found[name]["today"] == pytest.approx(today, rel=1e-5)
        assert found[name]["change"] == pytest.approx(value / today - 1, rel=1e-4)


def test_settings_have_the_weights_and_the_scale_that_were_replayed(
    tmp_path: Path, params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without age, the largest replayed weight sets the scale: 20,000 points from one minute to one year of limit.

    Weights that the replay does not know, such as that of QOS, do not change it.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    row = Site(today="multifactor", slurm=Multifactor(fair_share=20_000))
    known = params.model_copy(update={"scenarios": {"mine": small(tmp_path)[0]}, "sites": {"mine": row}})
    log.run(known)
    advise.run(known, "mine")
    evidence = json.loads((tmp_path / "reports/advice/mine/evidence.json").read_text())
    assert evidence["against"] == "multifactor"
    waits = {one["name"]: one["wait"]["value"] for one in evidence["orders"]}
    assert len({waits["multifactor"], waits["fcfs"], waits["limit_8h"]}) == 3
    config = tmp_path / "config.txt"
    text = "PriorityType = priority/multifactor\nPriorityWeightQOS = 900000\nPriorityWeightFairShare = 20000\n"
    config.write_text(text)
    site.write_slurm_settings(known, "mine", tmp_path / "files", "limit_8h", {"config": config})
    (scale,) = re.findall(r"local SCALE, TOP, TAU = ([\d.]+)", (tmp_path / "files/job_submit.lua").read_text())
    assert float(scale) == pytest.approx(20_000 / np.log(365 * 24 * 60))
    assert "backfill" not in capsys.readouterr().err
    config.write_text(f"{text}SchedulerParameters = bf_max_job_test=100\n")
    site.write_slurm_settings(known, "mine", tmp_path / "files", "limit_8h", {"config": config})
    said = capsys.readouterr().err
    ours = "reservations 500, tested 500, window_h 24, interval_s 30"
    assert f"made with {ours}, this cluster has reservations 100, tested 100, " in said
    config.write_text(text.replace("20000", "10000"))
    for other in ({"config": config}, {}):
        with pytest.raises(UserError, match=r"--config: expected the weights of sites\.mine\.slurm"):
            site.write_slurm_settings(known, "mine", tmp_path / "other", "limit_8h", other)
    assert not (tmp_path / "other").exists()


def test_tiers_are_replayed_and_named_by_the_settings_only_if_others_were(
    tmp_path: Path, params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    rows = {"work": Partition(), "long": Partition(tier=2, factor=4), "gone": Partition(factor=2)}
    ours = Site(
        today="multifactor", slurm=Multifactor(fair_share=20_000, fair_tree=False, partition=100), partitions=rows
    )
    known = params.model_copy(update={"scenarios": {"mine": small(tmp_path)[0]}, "sites": {"mine": ours}})
    log.run(known)
    advise.run(known, "mine")
    (tmp_path / "config.txt").write_text(
        "PriorityType = priority/multifactor\nPriorityWeightPartition = 100\nPriorityWeightFairShare = 20000\n"
        "PriorityFlags = NO_FAIR_TREE\n"
    )
    parts = "PartitionName=work PriorityTier=1\nPartitionName=long PriorityTier=2 PriorityJobFactor=4\n"
    (tmp_path / "parts.txt").write_text(parts)
    texts = {"config": tmp_path / "config.txt", "partitions": tmp_path / "parts.txt"}
    capsys.readouterr()
    site.write_slurm_settings(known, "mine", tmp_path / "files", "limit_8h", texts)
    said = capsys.readouterr().err
    assert ("PriorityTier" in said, "PriorityWeightPartition" in said) == (False, False)
    (tmp_path / "parts.txt").write_text(parts.replace("Tier=2", "Tier=3"))
    site.write_slurm_settings(known, "mine", tmp_path / "files", "limit_8h", texts)
    assert "not modelled: PriorityTier=[1, 3]: tiers, not replayed" in capsys.readouterr().err
    only = known.model_copy(update={"sites": {"mine": ours.model_copy(update={"slurm": None})}})
    site.write_slurm_settings(only, "mine", tmp_path / "files", "limit_8h", texts)
    assert "not modelled: PriorityWeightFairShare=20000" in capsys.readouterr().err
    with pytest.raises(UserError, match="with which the advice was made, found others: name --partitions too"):
        site.write_slurm_settings(known, "mine", tmp_path / "other", "limit_8h", {"config": tmp_path / "config.txt"})


def test_the_same_advice_has_the_same_bytes_and_the_page_can_be_renewed(
    advised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(advised)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    folder = "reports/advice/mine"
    names = ("reports/advice.json", "reports/advice.html", f"{folder}/orders.csv", f"{folder}/evidence.json")
    before = [(advised / name).read_bytes() for name in names]
    advise.run(load_params(), "mine")
    assert [(advised / name).read_bytes() for name in names] == before
    for name in names[:2]:
        (advised / name).unlink()
    advise.renew(load_params())
    assert [(advised / name).read_bytes() for name in names] == before


def test_a_site_that_is_not_there_is_named(params: Params) -> None:
    with pytest.raises(UserError, match="unknown site 'mine'; 'python -m pipeline site LOG' writes one"):
        advise.run(params, "mine")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("    today: fcsf\n", "params.yaml: sites.mine.today: unknown 'fcsf'; there are: area_16h, "),
        ("    today: fcfs\n    agent: mine_ppo\n", "params.yaml: sites.mine.agent: "),
        ("    most: {longest: -1}\n", "params.yaml: sites.mine.most.longest: "),
        ("    backfill: {reservations: 0}\n", "params.yaml: sites.mine.backfill.reservations: "),
    ],
)
def test_a_wrong_row_of_a_site_is_refused_in_one_line(
    advised: Path, place: Path, command: Command, row: str, said: str
) -> None:
    text = (advised / "params.yaml").read_text()
    assert text.count("    today: fcfs\n") == 1
    (place / "params.yaml").write_text(text.replace("    today: fcfs\n", row))
    done = command("advise", "mine")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_scenario_that_is_no_log_in_periods_is_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"sites\.machines: expected a scenario of a log in periods, found"):
        advise.run(params.model_copy(update={"sites": {"machines": Site()}}), "machines")


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


def test_what_only_settings_need_is_refused_without_their_folder(place: Path, command: Command) -> None:
    done = command("advise", "mine", "--policy", "limit_8h")
    assert (done.code, done.err.strip()) == (2, "error: --policy: only with --slurm FOLDER")
