"""Tables of the README and of the pages of results are those that the data of the repository give."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY

RESULTS = REPOSITORY / "docs" / "results"
sys.path.insert(0, str(RESULTS))
import as_published  # noqa: E402  beside the data, for it is run there
import layout  # noqa: E402  beside the data, for it is run there
import tables  # noqa: E402

DEFAULT = tables.page("default")
DOCUMENTS = ["README.md", *(str(path.relative_to(REPOSITORY)) for path in sorted(RESULTS.glob("*.md")))]


@pytest.mark.parametrize("path", tables.PAGES)
def test_the_tables_of_a_page_are_what_the_data_give(path: str) -> None:
    assert tables.written(path) == (REPOSITORY / path).read_text(), "run: python docs/results/tables.py write"


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


def test_the_data_are_of_the_models_that_dvc_lock_has() -> None:
    kept = json.loads(DEFAULT.MODELS.read_text())
    assert kept == DEFAULT.models(), "run confirm, then python docs/results/tables.py gather, then write"
    assert {"models/deeprm/policy", "models/deeprm3/policy", "reports/tables/heuristics/online"} <= set(kept)


def test_every_policy_of_a_table_played_the_same_jobsets() -> None:
    data = pd.read_csv(DEFAULT.DATA)
    counts = data.groupby(["scenario", "policy", "load"])["jobset"].nunique()
    assert counts["online"].unique().tolist() == [200]
    assert counts["streams"].unique().tolist() == [24]
    assert len(counts) == 7 * 6 + 5 * 6


@pytest.mark.parametrize("folder", as_published.SHOWN)
def test_every_policy_that_was_run_as_published_played_the_same_jobsets(folder: str) -> None:
    data = pd.read_csv(RESULTS / folder / as_published.JOBSETS)
    shown = [entry for entry in as_published.SHOWN[folder].values() if isinstance(entry, as_published.Shown)]
    for entry in shown:
        rows = data[(data["scenario"] == entry.scenario) & (data["measure"] == entry.measure)]
        counts = rows.pivot_table(index="policy", columns="load", values="jobset", aggfunc="nunique")
        assert set(counts.index) == set(entry.policies)
        assert (counts == counts.iloc[0]).to_numpy().all()
    assert set(data["scenario"]) == {entry.scenario for entry in shown}


def test_another_number_in_the_text_or_in_the_data_is_found() -> None:
    text = (RESULTS / "default.md").read_text()
    (cell,) = re.findall(r"\| sjf \| 1\.\d\d \|", text)  # whatever the run of the day has
    written = {title: write() for title, write in DEFAULT.TABLES.items()}
    assert layout.filled(text.replace(cell, "| sjf | 1.99 |"), written) == text
    data = pd.read_csv(DEFAULT.DATA)
    data.loc[data["policy"] == "sjf", "slowdown"] += 1
    assert DEFAULT.confirmed("streams", data) not in text


@pytest.mark.parametrize(("title", "policy", "load"), [("short runs", "deeprm3", 110), ("streams", "deeprm3", 80)])
def test_a_published_interval_comes_out_of_the_kept_jobsets_by_other_code(title: str, policy: str, load: int) -> None:
    """By nothing of the project's: pairs of jobsets, drawn again in a loop; to the percent that the page tells."""
    scenario, data = DEFAULT.CONFIRMED[title].scenario, pd.read_csv(DEFAULT.DATA)
    rows = data[(data["scenario"] == scenario) & (data["load"] == load)]
    wide = rows.pivot(index="jobset", columns="policy", values="slowdown")
    mine, other = wide[policy].to_numpy(), wide["hold"].to_numpy()
    draws = np.random.default_rng(20_261_123).integers(0, len(mine), (20_000, len(mine)))
    again = mine[draws].mean(axis=1) / other[draws].mean(axis=1) - 1
    alike = (mine[draws] - other[draws]).mean(axis=1) / other.mean()
    cell = next(line for line in DEFAULT.confirmed(title).splitlines() if line.startswith(f"| {policy} |"))
    found = re.findall(r"([\d.]+) \(([+-]\d+) %, (-?\d+) to (-?\d+)\)", cell)
    places = list(DEFAULT.CONFIRMED[title].compared)
    mean, difference, low, high = (float(part) for part in found[places.index(load)])
    assert mean == pytest.approx(mine.mean(), abs=0.006)
    assert difference == pytest.approx(100 * (mine.mean() / other.mean() - 1), abs=0.51)
    for ends in (again, alike):  # the ratio of means, and the mean gap over the reference as it is: both are in use
        assert (low, high) == pytest.approx(tuple(100 * np.quantile(ends, [0.025, 0.975])), abs=2.0)


def test_a_document_without_the_markers_or_with_two_is_refused() -> None:
    with pytest.raises(ValueError, match="markers of table 'streams' once, found them 0 times"):
        layout.placed("| sjf |", "streams", "| sjf |")
    with pytest.raises(ValueError, match="found them 2 times"):
        layout.placed("<!-- table: a --><!-- end of table -->" * 2, "a", "")
