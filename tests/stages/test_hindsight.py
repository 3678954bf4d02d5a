"""`hindsight`: a table of the first test jobsets, and which scenarios are refused."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import REPOSITORY
from repositories import SCENARIO
from ruamel.yaml import YAML

from pipeline.core import storage
from pipeline.core.config import Params, check_params
from pipeline.core.schemas.tables import HINDSIGHT
from pipeline.errors import UserError
from pipeline.problems.pool.env.evaluation.hindsight import warm_starts
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.stages import generate, hindsight

FILE = Path("reports/tables/hindsight/online/hindsight.parquet")


def rows() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    return loaded


def small(params: Params) -> Params:
    online = params.pool_scenario("online").model_dump() | SCENARIO | {"loads": [60, 150]}
    row = type(params.pool_scenario("online")).model_validate(online)
    how = params.hindsight.model_copy(update={"jobsets": 2, "limit": 0.01})
    return params.model_copy(update={"scenarios": {"online": row}, "hindsight": how, "threads": 2})


@pytest.fixture(scope="module")
def solved(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a small scenario was solved."""
    root = tmp_path_factory.mktemp("solved")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        few = small(params)
        generate.run(few, "online")
        storage.write_chosen("online", storage.Chosen(knobs={"hold": 10.0}, best={60: "sjf"}, validation={}))
        hindsight.run(few, "online")
    return root


def test_the_first_test_jobsets_of_each_load_are_solved(solved: Path) -> None:
    frame = HINDSIGHT.validate(pd.read_parquet(solved / FILE))
    assert frame[["load", "jobset"]].to_numpy().tolist() == [[60, 0], [60, 1], [150, 0], [150, 1]]
    assert set(frame["warm"]) <= {*HEURISTICS, "search"}
    assert (frame["objective"] <= frame["warm_slowdown"] + 1e-9).all()


def test_the_same_bytes_whoever_works_side_by_side(
    solved: Path, params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(solved)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    before = FILE.read_bytes()
    hindsight.run(small(params).model_copy(update={"threads": 1}), "online")
    assert FILE.read_bytes() == before


@pytest.mark.parametrize(
    ("names", "change", "said"),
    [
        (["machines"], {}, "hindsight.scenarios: 'machines': expected problem pool, found machines"),
        (["shares"], {}, "hindsight.scenarios: 'shares': expected problem pool, found groups"),
        (["online"], {"place_ahead": True}, "hindsight.scenarios: 'online': expected place_ahead false, found true"),
        (
            ["online"],
            {"arrivals": {"name": "poisson", "steps": 50, "measured": [10, 50]}, "step_limit": 50},
            "hindsight.scenarios: 'online': expected runs of which all jobs count, found a stream",
        ),
        (["onlin"], {}, "hindsight.scenarios: unknown 'onlin'; there are: .* did you mean 'online'"),
        (["online", "online"], {}, "hindsight.scenarios: expected each scenario once, got "),
    ],
)
def test_a_scenario_that_cannot_be_solved_is_refused_at_the_door(
    names: list[str], change: dict[str, Any], said: str
) -> None:
    values = rows()
    values["hindsight"]["scenarios"] = names
    values["scenarios"]["online"] |= change
    with pytest.raises(UserError, match=f"params.yaml: {said}"):
        check_params(values, "params.yaml")


def test_a_scenario_that_is_not_listed_is_refused_too(params: Params) -> None:
    with pytest.raises(UserError, match="scenario 'machines': problem machines is not solved in hindsight"):
        hindsight.run(params, "machines")


def test_a_jobset_that_no_heuristic_starts_in_time_is_named(
    solved: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = small(params)
    row = few.pool_scenario("online").model_copy(update={"step_limit": 3})
    test = read_jobsets(solved / storage.jobsets_folder("online"), "test", row.resources)
    cut = few.model_copy(update={"scenarios": {"online": row}})
    with pytest.raises(UserError, match="jobset 0 of load 60: no heuristic starts all jobs in 3 steps"):
        warm_starts(cut, "online", test, {"sjf": HEURISTICS["sjf"]})
