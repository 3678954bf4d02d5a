"""What the keys of params.yaml mean: every one has a comment, and editors have it in a schema."""

import json
from typing import Any

import jsonschema
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import Params, load_params
from pipeline.errors import UserError
from pipeline.interactive.reference import explained, keys, meanings, records, schema

SCHEMA = REPOSITORY / "docs" / "params.schema.json"


@pytest.fixture(scope="module")
def params() -> Params:
    return load_params(REPOSITORY / "params.yaml")


@pytest.fixture(scope="module")
def raw() -> Any:
    return YAML(typ="safe").load(REPOSITORY / "params.yaml")


def test_every_key_of_every_record_says_what_it_means() -> None:
    assert len(records()) > 40
    silent = {name: [key for key, said in meanings(record).items() if not said] for name, record in records().items()}
    assert {name: keys for name, keys in silent.items() if keys} == {}


def test_a_meaning_is_the_comment_beside_or_above_a_field_and_is_inherited() -> None:
    found = records()
    assert meanings(found["StreamPieces"])["slots"] == "In turn"
    assert meanings(found["PoolScenario"])["stall"].startswith("Steps without an arrival after which")
    assert meanings(found["Ppo"])["updates"] == meanings(found["Dagger"])["updates"] == "How many"


def test_the_schema_in_the_repository_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == schema(), (
        "run: python -m pipeline explain-params --schema docs/params.schema.json"
    )
    assert f"$schema={SCHEMA.relative_to(REPOSITORY)}" in (REPOSITORY / "params.yaml").read_text()


def test_the_schema_takes_params_yaml_and_refuses_a_mistake(raw: Any) -> None:
    jsonschema.validate(raw, schema())
    raw["agents"]["deeprm"]["finetune"]["update"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, schema())


def test_a_key_says_what_it_may_be_and_what_it_is_if_left_out() -> None:
    found = {key.name: key for key in keys(records()["PoolScenario"])}
    assert found["slots"].may_be == "whole number above 0, at most 1,000"
    assert found["slots"].default == ""
    assert found["policies_know"].may_be == "durations or estimates or predictions"
    assert found["policies_know"].default == "durations"
    assert found["jobsets"].may_be == "{train, validation, test}"
    assert found["arrivals"].may_be == "poisson or bernoulli or bursts, or at_once"


def test_a_place_is_explained_with_its_values_now(params: Params) -> None:
    means, rows = explained(params, "agents.deeprm3.finetune")
    assert means.startswith("An evolution strategy on networks of scores")
    assert {key.name: now for key, now in rows}["updates"] == str(params.agent("deeprm3").finetune.updates)
    assert explained(params, "workload.short") == ("Steps of a short job, [least, most]; now: [1, 3]", [])
    assert [key.name for key, _ in explained(params, "")[1]][:2] == ["seed", "threads"]
    assert "deeprm3" in [key.name for key, _ in explained(params, "agents")[1]]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("agents.deeprm33", "agents: no key 'deeprm33'; .*did you mean 'deeprm3'"),
        ("sead", "params.yaml: no key 'sead'; .*did you mean 'seed'"),
        ("seed.more", "seed: no key 'more'"),
    ],
)
def test_a_place_that_is_not_there_is_one_line(params: Params, place: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        explained(params, place)
