from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from elsewhere import POLICIES
from environments import IDS, settings
from gymnasium.wrappers import FlattenObservation
from sb3_contrib import MaskablePPO

import deeprm
from pipeline.errors import UserError


def shortest(seen: dict[str, np.ndarray], masks: np.ndarray) -> np.ndarray:
    """SJF in the pooled cluster, from the observations of B episodes at once."""
    legal = masks[:, :-1]
    length = np.where(legal, seen["jobs"].reshape(*legal.shape, -1)[:, :, 1], np.inf)
    return np.where(legal.any(axis=1), length.argmin(axis=1), legal.shape[1])


def test_sjf_by_observations_is_as_good_as_sjf_to_the_last_bit() -> None:
    found = deeprm.evaluate(shortest, "deeprm/Pool-v0", jobsets=4, load=130, name="mine")
    rows = found.comparison.set_index("against")
    assert set(rows["policy"]) == {"mine"}
    assert (rows.loc["sjf", ["difference", "difference_low", "difference_high"]] == 0).all(axis=None)
    assert rows.loc["best_heuristic", "mean_against"].max() <= rows.loc["fcfs", "mean_against"].min()
    assert set(found.jobsets["load"]) == {130}
    assert (found.jobsets.groupby("policy").size() == 4).all()
    assert "| sjf | " in found.markdown
    assert "+0.0 % (+0.0 to +0.0)" in found.markdown


@pytest.mark.parametrize("name", IDS)
def test_a_heuristic_by_its_name_equals_itself_in_every_environment(name: str) -> None:
    own = "equal" if name == "deeprm/Groups-v0" else "sjf"
    found = deeprm.evaluate(own, name, jobsets=1, name="mine", **settings(name))
    rows = found.comparison.set_index("against")
    assert (rows.loc[own, "difference"] == 0).all()
    assert rows["difference"].abs().max() > 0


def test_a_loaded_policy_decides_as_the_pipeline_asks_it() -> None:
    policy = deeprm.load_policy("sjf")
    env = deeprm.make("deeprm/Pool-v0", load=130).unwrapped
    env.reset(seed=1)
    view = env.episodes.simulator.observe(env.episodes.rows)
    action = policy(view, np.zeros(1))[0]
    assert env.action_masks()[action]
    assert view.duration[0, action] == view.duration[0][view.legal[0, :, 0]].min()


class Model:
    """The part of a model of sb3-contrib that evaluate uses."""

    def predict(self, seen: dict, deterministic: bool, action_masks: np.ndarray) -> tuple[np.ndarray, None]:
        assert deterministic
        return shortest(seen, action_masks), None


def test_a_model_of_sb3_is_asked_with_masks() -> None:
    found = deeprm.evaluate(Model(), jobsets=1, load=130)
    assert (found.comparison.set_index("against").loc["sjf", "difference"] == 0).all()


@pytest.mark.parametrize("flat", [False, True], ids=["dict", "flattened"])
@pytest.mark.parametrize(("env", "load"), [("deeprm/Pool-v0", 130), ("deeprm/Machines-v0", 110)])
def test_a_model_made_on_an_environment_decides_the_same_in_the_library_and_by_its_file(
    flat: bool, env: str, load: int, tmp_path: Path
) -> None:
    made = deeprm.make(env)
    model = MaskablePPO(
        "MlpPolicy" if flat else "MultiInputPolicy", FlattenObservation(made) if flat else made, n_steps=8, seed=1
    )
    model.save(tmp_path / "ppo.zip")
    about = {"env": env, "jobsets": 2, "load": load}
    one, other = (deeprm.evaluate(policy, **about) for policy in (model, str(tmp_path / "ppo.zip")))
    assert len(one.jobsets[one.jobsets["policy"] == "policy"]) == 2
    pd.testing.assert_frame_equal(one.jobsets, other.jobsets)


def test_a_callable_of_the_pipeline_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(POLICIES)
    found = deeprm.evaluate("mine.py:sjf", jobsets=1, load=130)
    assert (found.comparison.set_index("against").loc["sjf", "difference"] == 0).all()


def test_illegal_actions_are_counted_and_said() -> None:
    found = deeprm.evaluate(lambda seen, masks: np.zeros(len(masks), dtype=int), jobsets=1, load=190)
    assert found.illegal > 0
    assert f"{found.illegal} illegal actions became void" in found.markdown
    assert deeprm.evaluate(shortest, jobsets=1, load=10).illegal == 0


def _raises(seen: dict, masks: np.ndarray) -> np.ndarray:
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (_raises, r"policy 'policy': KeyError: 'weights' \(it is called with \(observations, masks\)"),
        (lambda seen, masks: 0, r"expected whole numbers \[1\] for 1 observations, got int64 \[\]"),
        (lambda seen, masks: np.full(len(masks), 0.5), "expected whole numbers .* got float64"),
        (lambda seen, masks: np.full(len(masks), 11), r"action 11 is outside of Discrete\(11\)"),
        (3, "expected a callable, a model with `predict` or the name of a heuristic, got int"),
        ("sjff", "unknown policy 'sjff'"),
    ],
    ids=["raises", "scalar", "floats", "outside", "no policy", "misspelt"],
)
def test_what_is_wrong_with_a_policy_is_told_in_one_line(policy: object, said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        deeprm.evaluate(policy, jobsets=1, load=10)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split": "exam"}, "split: expected one of train, validation, test, got 'exam'"),
        ({"load": 11}, "load: expected one of 10, 30"),
        ({"jobsets": 0}, "jobsets: expected 1 or more, got 0"),
        ({"slot": 3}, r"no argument 'slot'.*slots"),
        ({"name": "sjf"}, "'sjf' is a heuristic's; choose another"),
        ({"env": "deeprm/Pond-v0"}, "no environment 'deeprm/Pond-v0'"),
    ],
)
def test_a_wrong_argument_of_evaluate_is_told(changes: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        deeprm.evaluate(shortest, **{"jobsets": 1, **changes})
