"""Tables of the README are those that the kept results of the default run give, which are those of reports/."""

import sys

import pandas as pd
import pytest
from builders import REPOSITORY

FOLDER = REPOSITORY / "docs" / "results" / "default"
sys.path.insert(0, str(FOLDER))
import tables  # noqa: E402  beside the data, for it is run there


def test_the_tables_of_the_readme_are_what_the_data_give() -> None:
    text = tables.README.read_text()
    assert tables.with_tables(text) == text, "run: python docs/results/default/tables.py write"


def test_the_data_are_of_the_run_that_reports_show() -> None:
    data = pd.read_csv(tables.DATA)
    means = data.groupby(["scenario", "policy", "load"])["slowdown"].mean()
    shown = pd.read_csv(REPOSITORY / "reports" / "summary.csv").set_index(["scenario", "policy", "load"])
    assert len(means) == 7 * 6 + 5 * 6
    expected = shown.loc[means.index, "slowdown"].to_numpy()
    assert means.to_numpy() == pytest.approx(expected, rel=1e-5), "run: tables.py gather, then write"


def test_another_number_in_the_text_or_in_the_data_is_found() -> None:
    text = tables.README.read_text()
    cell = "| sjf | 1.16 |"
    assert text.count(cell) == 1
    assert tables.with_tables(text.replace(cell, "| sjf | 1.17 |")) == text
    data = pd.read_csv(tables.DATA)
    data.loc[data["policy"] == "sjf", "slowdown"] += 1
    params = tables.load_params(REPOSITORY / "params.yaml")
    table = tables.rendered("streams", data, params.evaluation, params.seed)
    assert table not in text


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="expected markers of table 'streams'"):
        tables.placed("| sjf |", "streams", "| sjf |")
