"""Tables of the README and of result pages match the data in the repository."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from published import OWN, has_own_results

from benchmarks.slurm import day_figures as days
from pipeline.comparing.statistics import comparison
from pipeline.core.config import load_params
from pipeline.core.storage.files import read_table

RESULTS = REPOSITORY / "docs" / "results"
sys.path.insert(0, str(RESULTS))
import as_published  # noqa: E402  beside the data, for it is run there
import layout  # noqa: E402  beside the data, for it is run there
import tables  # noqa: E402

DEFAULT = tables.page("default")
DOCUMENTS = ["README.md", *(str(path.relative_to(REPOSITORY)) for path in sorted(RESULTS.glob("*.md")))]


@pytest.mark.parametrize("path", tables.PAGES)
def test_the_tables_of_a_page_are_what_the_data_give(path: str) -> None:
    written = tables.written(path) == (REPOSITORY / path).read_text()
    if not written and has_own_results():
        pytest.skip(OWN)
    assert written, "run: python docs/results/tables.py write"


def test_results_of_another_processor_differ_from_the_published_ones(tmp_path: Path) -> None:
    lock = "stages: {tune: {cmd: x, deps: [{path: code, md5: a}], outs: [{path: model, md5: b}]}}"
    (tmp_path / "dvc.lock").write_text(lock)
    for words in ("init -q", "add dvc.lock", "-c user.name=a -c user.email=b commit -qm c"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    (tmp_path / "dvc.lock").write_text(lock.replace("md5: a", "md5: c"))
    assert not has_own_results.__wrapped__(tmp_path)  # other code, the same results
    (tmp_path / "dvc.lock").write_text(lock.replace("md5: b", "md5: c"))
    assert has_own_results.__wrapped__(tmp_path)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_no_table_is_written_by_hand(path: str) -> None:
    text = (REPOSITORY / path).read_text()
    assert layout.by_hand(text) == []
    assert (path in tables.PAGES) == ("<!-- table: " in text), "a page with tables has a line in PAGES"


def test_a_table_by_hand_and_a_table_that_nothing_writes_are_found() -> None:
    by_hand = "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
    assert layout.by_hand(by_hand) == ["| --- | ---: |"]
    assert layout.by_hand(f"<!-- table: x -->\n\n{by_hand}\n<!-- end of table -->\n") == []
    with pytest.raises(ValueError, match="nothing writes the tables x"):
        layout.filled("<!-- table: x -->\n<!-- end of table -->", {})


@pytest.mark.skipif(has_own_results(), reason=OWN)
def test_the_data_are_of_the_models_that_dvc_lock_has() -> None:
    kept = json.loads(DEFAULT.MODELS.read_text())
    assert kept == DEFAULT.models(), "run: python docs/results/tables.py confirm, then write"
    assert {"models/deeprm/policy", "models/deeprm3/policy", "reports/tables/heuristics/online"} <= set(kept)


def test_every_policy_of_a_table_played_the_same_jobsets() -> None:
    data = pd.read_csv(DEFAULT.DATA)
    counts = data.groupby(["scenario", "policy", "load"])["jobset"].nunique()
    params = DEFAULT.repository()
    assert set(data["scenario"]) == set(params.scenarios)
    for scenario, row in params.scenarios.items():
        assert counts[scenario].unique().tolist() == [row.jobsets.test]
        assert set(counts[scenario].index.get_level_values("load")) == set(row.loads)


@pytest.mark.parametrize("folder", as_published.SHOWN)
def test_every_policy_that_was_run_as_published_played_the_same_jobsets(folder: str) -> None:
    shown = as_published.SHOWN[folder].values()
    for entry in shown:
        counts = as_published.kept(folder, entry).pivot_table(
            index="policy", columns="load", values="jobset", aggfunc="nunique"
        )
        assert set(counts.index) == set(entry.policies)
        assert (counts == counts.iloc[0]).to_numpy().all()
    data = pd.read_csv(RESULTS / folder / as_published.JOBSETS)
    told = {(entry.scenario, policy) for entry in shown for policy in entry.policies}
    assert set(zip(data["scenario"], data["policy"], strict=True)) == told


@pytest.mark.skipif(has_own_results(), reason=OWN)
def test_another_number_in_the_text_or_in_the_data_is_found() -> None:
    text = (RESULTS / "default.md").read_text()
    (cell,) = re.findall(r"\| sjf \| 1\.\d\d \|", text)  # whichever value the latest run has
    written = {title: write() for title, write in DEFAULT.TABLES.items()}
    assert layout.filled(text.replace(cell, "| sjf | 1.99 |"), written) == text
    data = pd.read_csv(DEFAULT.DATA)
    data.loc[data["policy"] == "sjf", "cost"] += 1
    assert DEFAULT.confirmed("streams", data) not in text


@pytest.mark.parametrize(("title", "policy", "load"), [("short runs", "deeprm3", 110), ("streams", "deeprm3", 50)])
def test_a_published_interval_comes_out_of_the_kept_jobsets_by_other_code(title: str, policy: str, load: int) -> None:
    """Recompute without the project's code: resample pairs of jobsets; accurate to the percent that the page shows."""
    data = pd.read_csv(DEFAULT.DATA)
    scenario, places = DEFAULT.CONFIRMED[title], list(DEFAULT.shown(title, data).loads)
    rows = data[(data["scenario"] == scenario) & (data["load"] == load)]
    wide = rows.pivot(index="jobset", columns="policy", values="cost")
    mine, other = wide[policy].to_numpy(), wide["hold"].to_numpy()
    draws = np.random.default_rng(20_261_123).integers(0, len(mine), (4000, len(mine)))
    again = mine[draws].mean(axis=1) / other[draws].mean(axis=1) - 1
    alike = (mine[draws] - other[draws]).mean(axis=1) / other.mean()
    cell = next(line for line in DEFAULT.confirmed(title).splitlines() if line.startswith(f"| {policy} |"))
    found = re.findall(r"([\d.]+) \(([+-]\d+) %, (-?\d+) to (-?\d+)\)", cell)
    mean, difference, low, high = (float(part) for part in found[places.index(load)])
    assert mean == pytest.approx(mine.mean(), abs=0.006)
    assert difference == pytest.approx(100 * (mine.mean() / other.mean() - 1), abs=0.51)
    for ends in (again, alike):  # ratio of means; mean gap over the reference's original mean: both are in use
        assert (low, high) == pytest.approx(tuple(100 * np.quantile(ends, [0.025, 0.975])), abs=2.0)


def test_a_document_without_the_markers_or_with_two_is_refused() -> None:
    with pytest.raises(ValueError, match="markers of table 'streams' once, found them 0 times"):
        layout.placed("| sjf |", "streams", "| sjf |")
    with pytest.raises(ValueError, match="found them 2 times"):
        layout.placed("<!-- table: a --><!-- end of table -->" * 2, "a", "")


@pytest.mark.parametrize(
    ("name", "measure", "scenario", "policy", "against"),
    [
        ("comparison", "mean_slowdown", "online", "deeprm", "sjf"),
        ("comparison", "mean_bounded_slowdown", "machines", "deepk8s_ppo", "sjf"),
        ("delay", "mean_wait", "shares", "controller", "proportional"),
    ],
)
def test_an_interval_in_reports_comes_out_of_the_test_jobsets_that_are_kept_by_other_code(
    name: str, measure: str, scenario: str, policy: str, against: str
) -> None:
    """Recompute without the project's code: resample pairs of jobsets of each load, and average the loads' means."""
    kept = pd.read_csv(DEFAULT.TESTED / f"{scenario}.csv.gz")
    found = pd.read_csv(REPOSITORY / "reports" / f"{name}.csv", dtype={"load": str})
    rows = found[(found["scenario"] == scenario) & (found["policy"] == policy) & (found["against"] == against)]
    row, rng, gaps, base = rows[rows["load"] == "all"].iloc[0], np.random.default_rng(7), [], []
    for _, part in kept.groupby("load"):
        wide = part.pivot(index="jobset", columns="policy", values=measure)
        gap, other = (wide[policy] - wide[against]).to_numpy(), wide[against].to_numpy()
        draws = rng.integers(0, len(gap), (4000, len(gap)))
        gaps.append(np.append(gap[draws].mean(axis=1), gap.mean()))
        base.append(np.append(other[draws].mean(axis=1), other.mean()))
    ratio = np.mean(gaps, axis=0) / np.mean(base, axis=0)
    width = row["difference_high"] - row["difference_low"]
    assert ratio[-1] == pytest.approx(row["difference"], abs=2e-4)
    assert np.quantile(ratio[:-1], [0.025, 0.975]) == pytest.approx(
        [row["difference_low"], row["difference_high"]], abs=0.1 * width
    )


def test_every_compared_policy_is_kept_with_every_jobset() -> None:
    summary = pd.read_csv(REPOSITORY / "reports" / "summary.csv")
    for scenario, part in summary.groupby("scenario"):
        kept = pd.read_csv(DEFAULT.TESTED / f"{scenario}.csv.gz")
        counts = kept.groupby(["policy", "load"])["jobset"].nunique()
        assert counts.to_dict() == part.set_index(["policy", "load"])["n"].to_dict()
    sizes = [path.stat().st_size for path in DEFAULT.TESTED.iterdir()]
    assert sum(sizes) < 3_000_000, "the repository keeps few columns, and few digits"


def outside_tables(path: str) -> str:
    """Return a page without its tables and its code."""
    text = (REPOSITORY / path).read_text()
    text = re.sub(r"<!-- table: .*?<!-- end of table -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|\*\*The mean wait falls[^*]*\*\*", "", text, flags=re.DOTALL)  # tested elsewhere
    return re.sub(r"`[^`]*`|^    .*$|\]\([^)]*\)", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", ["README.md", "docs/results/default.md"])
def test_results_of_the_default_run_are_in_tables_and_not_in_sentences(path: str) -> None:
    """A rerun makes such numbers stale: percentages must be loads or the interval's, and no number has decimals."""
    params, text = DEFAULT.repository(), outside_tables(path)
    known = {load for row in params.scenarios.values() for load in row.loads} | {100 * params.evaluation.confidence}
    lists = re.findall(r"((?:\d+(?:, | and | to ))*\d+) %", text)
    found = {int(number) for numbers in lists for number in re.findall(r"\d+", numbers)}
    assert found <= known, f"no load, so a result: {sorted(found - known)}"
    assert re.findall(r"(?<![\d.])\d+\.\d+(?!\.?\d)", text.replace("Python 3.11", "")) == []


def hpc2n_windows() -> str:
    rows = pd.read_csv(RESULTS / "controller" / "jobsets.csv.gz").query("scenario == 'hpc2n_4'")
    return str(rows["unit"].nunique())


def slowdown_of_openb() -> str:
    """How far PPO's slowdown, mean over loads, is below SJF's, in percent."""
    rows = pd.read_csv(RESULTS / "deepk8s" / "jobsets.csv.gz").query("scenario == 'openb'")
    means = rows.groupby(["policy", "load"])["mean_slowdown"].mean().groupby("policy").mean()
    return f"{100 * (1 - means['openb_ppo'] / means['sjf']):.0f}"


def wait_to_easy(log: str) -> str:
    """How far SAF's 99th percentile of waits with known estimates is below EASY's, in percent."""
    rows = pd.read_csv(RESULTS / "run-times" / f"{log}_schedules.csv").set_index(["order", "told"])
    return f"{-100 * rows.loc[('SAF', 'estimates'), 'p99_wait_difference']:.0f}"


def replayed_change(log: str, one: tuple[str, str], other: tuple[str, str]) -> str:
    """The reduction of the mean bounded slowdown over replays of a log, in percent, with its interval."""
    page = tables.page("run-times")
    drawn, blocks = page._replayed(log)
    change, low, high = page._gap(drawn[one] / drawn[other] - 1, blocks)
    return f"{-100 * change:.0f} ({-100 * high:.0f} to {-100 * low:.0f})"


def saf_on_hpc2n() -> str:
    return re.sub(r" ", " % below EASY in bounded slowdown on HPC2N ", replayed_change("test", SAF, EASY), count=1)


def saf_on_kth() -> str:
    return re.sub(r" ", " % on KTH ", replayed_change("kth", SAF, EASY), count=1)


def saf_with_predictions() -> str:
    return re.sub(r" ", " % ", replayed_change("test", (SAF[0], "predictions"), SAF), count=1)


def update_below_tetris() -> str:
    rows = pd.read_csv(RESULTS / "paper-scale" / "claims.csv")
    (said, *_) = rows.loc[rows["claim"].str.startswith("After 200 iterations"), "found"]
    return re.search(r"first below after update (\d+)", said)[1]  # type: ignore[index]


def above_the_network_of_the_load() -> str:
    """Return the loads at which one network for all loads differs from the one trained there, and the difference."""
    here, said = tables.page("paper-scale"), []
    published = pd.read_csv(RESULTS / "paper-scale" / as_published.JOBSETS).rename(columns={"value": "mean_slowdown"})
    all_loads = published[(published["scenario"] == "bernoulli") & (published["policy"] == "all_loads")]
    rows = pd.concat([all_loads, pd.read_csv(here.HERE / "jobsets.csv.gz").query("scenario == 'bernoulli'")])
    for load in as_published.PAPER:
        own = f"deeprm_{load}"
        mine = rows[(rows["load"] == load) & rows["policy"].isin(["all_loads", own])]
        settings = load_params(REPOSITORY / "params.yaml").evaluation
        found = comparison(mine, "bernoulli", {own: {load: own}}, settings, np.random.default_rng(1))
        gap = found.query("load != 'all'").set_index("policy").loc["all_loads"]
        if gap["difference_low"] > 0 or gap["difference_high"] < 0:
            said.append(f"{load} %: {layout.difference(gap)}")
    return ", ".join(said)


def day_on_slurm() -> str:
    """Return what the settings change on a real Slurm cluster: mean, 99th percentile and longest of waits."""
    day = read_table(RESULTS / "slurm-day/day.csv.gz", days.DAY)
    mean, _, p99, longest = days.effects(day, days.SLURM)
    wait = f"{-100 * mean.change:.1f} % shorter ({-100 * mean.high:.1f} to {-100 * mean.low:.1f})"
    return (
        f"{wait} than in order of arrival, but a 99th percentile {100 * p99.change:.0f} % and a longest wait "
        f"{100 * longest.change:.0f} % longer"
    )


def day_in_replays() -> str:
    """Return what the replays predict for it."""
    day, said = read_table(RESULTS / "slurm-day/day.csv.gz", days.DAY), []
    for player in (days.POOL, days.NODES):
        mean, _, p99, longest = (f"{100 * one.change:+.0f}" for one in days.effects(day, player))
        said.append(f"{mean}, {p99} and {longest} %")
    return f"{said[0]} with one pool of processors, on which the advice is based, and {said[1]}"


def held_on_slurm() -> str:
    """Return how much longer than its run time a job of the day holds its processors."""
    day = read_table(RESULTS / "slurm-day/day.csv.gz", days.DAY)
    return f"{np.median(days.overheads(day)['processors held longer by']):.0f}"


def longest_on_slurm() -> str:
    """Return how much longer the longest wait of the day is with the settings."""
    day = read_table(RESULTS / "slurm-day/day.csv.gz", days.DAY)
    return f"{100 * days.effects(day, days.SLURM)[-1].change:.0f}"


SAF, EASY = ("SAF", "estimates"), ("EASY", "estimates")
SENTENCES = [
    ("docs/results/run-times.md", r"estimates, SAF is (.*?), \d+ % on KTH", saf_on_hpc2n),
    ("docs/results/run-times.md", r"to \d+\), (\d+ % on KTH .*?) and", saf_on_kth),
    ("docs/results/run-times.md", r"lower SAF's by another (.*?) on HPC2N", saf_with_predictions),
    ("README.md", r"on the \[busiest day\]\(\S+\) by (\d+) %", longest_on_slurm),
    ("docs/results/slurm-day.md", r"hold processors (\d+) s too long", held_on_slurm),
    ("docs/results/slurm-day.md", r"has a mean wait (.*? longer)\.", day_on_slurm),
    ("docs/results/slurm-day.md", r"site advice predicts (.*?) with the site's nodes", day_in_replays),
    ("docs/results/controller.md", r"the same (\d+) windows", hpc2n_windows),
    ("docs/results/controller.md", r"(\d+) test windows a load", hpc2n_windows),
    ("docs/results/deepk8s.md", r"PPO's mean slowdown is (\d+) % below SJF's", slowdown_of_openb),
    ("docs/results/run-times.md", r"p99 of wait is (\d+) % below EASY's on KTH", partial(wait_to_easy, "kth")),
    ("docs/results/run-times.md", r"and (\d+) % on Curie; some", partial(wait_to_easy, "curie")),
    ("docs/results/paper-scale.md", r"which it passes by update (\d+)", update_below_tetris),
    ("docs/results/paper-scale.md", r"network trained at a load only at (\d+ %: .*?\))", above_the_network_of_the_load),
]


@pytest.mark.parametrize(("path", "sentence", "number"), SENTENCES, ids=[words for _, words, _ in SENTENCES])
def test_a_number_in_a_sentence_is_that_of_the_data(path: str, sentence: str, number: Callable[[], str]) -> None:
    text = " ".join((REPOSITORY / path).read_text().split())
    assert re.findall(sentence, text) == [number()]


# Look-ahead under RLScheduler's protocol.

AHEAD = tables.page("rlscheduler")


def sequences(*ratios: float) -> pd.DataFrame:
    """Sequences in which SJF is the best of five rules; the planner's slowdowns are these multiples of SJF's."""
    wide = pd.DataFrame(dict.fromkeys(AHEAD.FIVE, 9.0), index=range(len(ratios))).assign(sjf=[1.0, 3.0, 4.0])
    return wide.assign(plan_saf=wide["sjf"] * list(ratios))


def test_the_planner_is_held_to_the_best_rule_of_each_log_and_logs_count_alike() -> None:
    found = AHEAD.over_logs({"a": sequences(0.5, 0.5, 0.5), "b": sequences(2.0, 2.0, 2.0)})
    assert found["difference"] == pytest.approx(0)  # half and twice; the same in all sequences and resamples
    assert (found["difference_low"], found["difference_high"]) == (pytest.approx(0), pytest.approx(0))
    told = AHEAD.over_logs({"a": sequences(1.0, 1.0, 0.5)})
    assert told["difference"] == pytest.approx(-2 / 8)
    # Two sequences are drawn from the three: the lowest result has the third twice, the highest does not have it.
    assert (told["difference_low"], told["difference_high"]) == (pytest.approx(-0.5), pytest.approx(0))


def test_idle_is_what_is_free_while_a_waiting_job_would_fit() -> None:
    spec = importlib.util.spec_from_file_location("ahead", RESULTS / "rlscheduler" / "ahead.py")
    assert spec is not None
    assert spec.loader is not None
    ahead = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ahead)
    arrival, held = np.zeros(3), np.array([2.0, 3.0, 1.0])
    # A job of 2 processors runs from 0 to 4. Of 3, 1 is free: the job of 1 would fit there until it starts at 3.
    start, finish = np.array([0.0, 4.0, 3.0]), np.array([4.0, 8.0, 4.0])
    assert ahead.free_though_one_fits(arrival, start, finish, held, 3) == pytest.approx(3 / 12)
    start, finish = np.array([0.0, 4.0, 0.0]), np.array([4.0, 8.0, 1.0])  # it starts at once: no job fits the rest
    assert ahead.free_though_one_fits(arrival, start, finish, held, 3) == 0
