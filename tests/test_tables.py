"""Tables of the README are those that the kept results of the default run give, on confirming jobsets."""

import json
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


def test_the_data_are_of_the_models_that_dvc_lock_has() -> None:
    kept = json.loads(tables.MODELS.read_text())
    assert kept == tables.models(), "run confirm, then tables.py gather and write"
    assert {"models/deeprm/policy", "models/deeprm3/policy", "reports/tables/heuristics/online"} <= set(kept)


def test_every_policy_of_a_table_played_the_same_jobsets() -> None:
    data = pd.read_csv(tables.DATA)
    counts = data.groupby(["scenario", "policy", "load"])["jobset"].nunique()
    assert counts["online"].unique().tolist() == [200]
    assert counts["streams"].unique().tolist() == [24]
    assert len(counts) == 7 * 6 + 5 * 6


def test_another_number_in_the_text_or_in_the_data_is_found() -> None:
    text = tables.README.read_text()
    cell = "| sjf | 1.20 |"
    assert text.count(cell) == 1
    assert tables.with_tables(text.replace(cell, "| sjf | 1.21 |")) == text
    data = pd.read_csv(tables.DATA)
    data.loc[data["policy"] == "sjf", "slowdown"] += 1
    params = tables.load_params(REPOSITORY / "params.yaml")
    table = tables.rendered("streams", data, params.evaluation, params.seed)
    assert table not in text


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="expected markers of table 'streams'"):
        tables.placed("| sjf |", "streams", "| sjf |")
