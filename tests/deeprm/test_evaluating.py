import numpy as np
import pytest
from environments import IDS, settings

import deeprm
from pipeline.errors import UserError


def shortest(seen: dict[str, np.ndarray], masks: np.ndarray) -> np.ndarray:
    """SJF in the pooled cluster, by what is seen of B episodes at once."""
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
    """What evaluate looks for in a model of sb3-contrib."""

    def predict(self, seen: dict, deterministic: bool, action_masks: np.ndarray) -> tuple[np.ndarray, None]:
        assert deterministic
        return shortest(seen, action_masks), None


def test_a_model_of_sb3_is_asked_with_masks() -> None:
    found = deeprm.evaluate(Model(), jobsets=1, load=130)
    assert (found.comparison.set_index("against").loc["sjf", "difference"] == 0).all()


def _raises(seen: dict, masks: np.ndarray) -> np.ndarray:
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (_raises, "policy 'policy': KeyError: 'weights'"),
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
        ({"name": "sjf"}, "'sjf' is a heuristic's; choose another"),
        ({"env": "deeprm/Pond-v0"}, "no environment 'deeprm/Pond-v0'"),
    ],
)
def test_a_wrong_argument_of_evaluate_is_told(changes: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        deeprm.evaluate(shortest, **{"jobsets": 1, **changes})
