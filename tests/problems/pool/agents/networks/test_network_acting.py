"""How a network's logits become an action: masks, draws and ties."""

import numpy as np
import pytest
import torch
from builders import many, observation, random_jobset
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from pipeline.core.config import Mlp
from pipeline.core.types import Observation, keys, legal_actions, uniform
from pipeline.learning.sampling import sample
from pipeline.problems.pool.agents.networks.network import PLAY, Network, allowed, greedy, log_probabilities
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.simulation.rollout import play

GRID = (np.arange(1000) + 0.5) / 1000


class Fixed(Network):
    """A network of one opinion."""

    chunk = 7

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, observed: CompactObservation) -> Tensor:
        assert len(observed.cells) <= self.chunk
        return self.logits.expand(len(observed.cells), -1)


def busy(fits: list[bool]) -> Observation:
    """Three jobs wait while another one runs."""
    return observation(duration=[1, 1, 1], fits_now=fits, free=[[5, 5]])


def shares(network: Network, view: Observation, masked: bool) -> list[float]:
    """How often each action is sampled, over evenly spread draws."""
    actions = PLAY["sampled"](network, masked)(many(view, len(GRID)), GRID)
    return [float(share) for share in np.bincount(actions, minlength=4) / len(GRID)]


def test_sampled_actions_come_as_often_as_they_are_probable() -> None:
    network = Fixed(*np.log([0.1, 0.2, 0.3, 0.4]).tolist())
    assert shares(network, busy([True] * 3), masked=True) == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.0011)


def test_a_mask_shares_the_chances_of_illegal_actions_among_the_others() -> None:
    network = Fixed(*np.log([0.1, 0.2, 0.3, 0.4]).tolist())
    assert shares(network, busy([True, False, True]), masked=True) == pytest.approx(
        [0.1 / 0.8, 0, 0.3 / 0.8, 0.4 / 0.8], abs=0.0011
    )


def test_without_a_mask_illegal_actions_are_drawn_too() -> None:
    network = Fixed(*np.log([0.1, 0.2, 0.3, 0.4]).tolist())
    assert shares(network, busy([False] * 3), masked=False) == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.0011)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("play_it", list(PLAY))
def test_void_is_out_of_the_question_on_an_idle_cluster_with_a_job_that_fits(play_it: str, masked: bool) -> None:
    idle = observation(duration=[1, 1, 1], fits_now=[False, True, False])
    assert allowed(compact(idle), masked).tolist() == [[not masked, True, not masked, not masked]]
    policy = PLAY[play_it](Fixed(0.0, 0.0, 0.0, 50.0), masked)
    assert policy(idle, np.array([0.5])).tolist() == [1 if masked else 3]


def test_void_stays_legal_where_no_job_fits_the_idle_cluster() -> None:
    view = observation(duration=[1, 1, 1], fits_now=[False] * 3)
    assert legal_actions(view).tolist() == [[False, False, False, True]]


def test_void_stays_legal_on_an_idle_cluster_as_long_as_jobs_arrive() -> None:
    view = observation(duration=[1, 1, 1], may_idle=True)
    assert legal_actions(view).tolist() == [[True, True, True, True]]
    assert legal_actions(observation(duration=[1, 1, 1])).tolist() == [[True, True, True, False]]


def test_void_stays_legal_while_a_job_runs() -> None:
    assert legal_actions(busy([True, True, False])).tolist() == [[True, True, False, True]]


def test_greedy_takes_the_most_probable_action() -> None:
    assert greedy(Fixed(0.0, 3.0, 1.0, 2.0), masked=True)(busy([True] * 3), np.zeros(1)).tolist() == [1]


def test_greedy_takes_the_most_probable_legal_action() -> None:
    view = busy([True, False, True])
    assert greedy(Fixed(0.0, 3.0, 1.0, 2.0), masked=True)(view, np.zeros(1)).tolist() == [3]
    assert greedy(Fixed(0.0, 3.0, 1.0, 2.0), masked=False)(view, np.zeros(1)).tolist() == [1]


def test_greedy_gives_ties_to_the_lowest_action() -> None:
    assert greedy(Fixed(1.0, 2.0, 2.0, 2.0), masked=True)(busy([True] * 3), np.zeros(1)).tolist() == [1]


def test_greedy_prefers_a_legal_action_to_any_illegal_one_however_low_its_logit() -> None:
    view = busy([True, False, False])
    assert greedy(Fixed(-3e9, 5.0, 5.0, -4e9), masked=True)(view, np.zeros(1)).tolist() == [0]


def test_greedy_pays_no_heed_to_draws() -> None:
    policy = greedy(Fixed(0.0, 0.1, 0.0, 0.0), masked=True)
    assert set(policy(many(busy([True] * 3), len(GRID)), GRID).tolist()) == {1}


def test_probabilities_of_allowed_actions_add_up_to_one_and_the_others_are_zero() -> None:
    chances = log_probabilities(torch.tensor([[1.0, 5.0, 1.0]]), np.array([[True, False, True]])).exp()
    assert chances.tolist() == [[0.5, 0.0, 0.5]]


def test_a_forbidden_action_gets_no_gradient_and_no_nan() -> None:
    logits = torch.tensor([[1.0, 5.0, 1.0]], requires_grad=True)
    chances = log_probabilities(logits, np.array([[True, False, True]]))
    (chances[0, 0] - (chances.exp() * chances).sum()).backward()  # type: ignore[no-untyped-call]
    # d log p0 = [1 - p0, 0, -p2] = [0.5, 0, -0.5]; the entropy of equal chances has no gradient
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([0.5, 0.0, -0.5], abs=1e-6)


def test_logits_are_taken_in_chunks_and_put_together_in_order() -> None:
    observed = compact(many(busy([True] * 3), 20))
    assert Fixed(1.0, 2.0, 3.0, 4.0).frozen()(observed).tolist() == [[1.0, 2.0, 3.0, 4.0]] * 20


DRAWS = st.one_of(st.sampled_from([0.0, 1 - 2**-53, 0.5]), st.floats(0, 1, exclude_max=True))


@settings(max_examples=300)
@given(
    weights=hnp.arrays(np.float64, st.integers(1, 8), elements=st.one_of(st.just(0.0), st.floats(1e-9, 1.0))),
    draw=DRAWS,
)
def test_an_action_of_no_chance_is_never_drawn(weights: np.ndarray, draw: float) -> None:
    if not weights.any():
        weights = np.append(weights, 1.0)
    logits, may = np.zeros_like(weights, dtype=np.float32), weights > 0
    logits[may] = np.log(weights[may])
    (action,) = sample(logits[None], may[None], True, np.array([draw]))
    assert weights[action] > 0


def test_a_draw_falls_into_the_share_of_its_action() -> None:
    chances = np.array([1.0, 0.25, 0.25, 1.0, 0.5])
    logits, may = np.tile(np.log(chances), (5, 1)).astype(np.float32), np.tile([False, True, True, False, True], (5, 1))
    draws = np.array([0.0, 0.2499, 0.2501, 0.5001, 0.9999])
    assert sample(logits, may, True, draws).tolist() == [1, 1, 2, 4, 4]


OF = Cluster((4, 4), 6, 3, 6, True)


def untrained(seed: int) -> Network:
    return build(Mlp(name="mlp", hidden=16, clock=True), OF, seed=seed)


@pytest.mark.parametrize("masked", [True, False])
def test_an_episode_is_sampled_the_same_in_any_company(masked: bool) -> None:
    rng = np.random.default_rng(2)
    jobsets = [random_jobset(rng, OF, 15, 12) for _ in range(24)]
    key = keys(3, np.arange(24), np.zeros(24, dtype=np.int64))
    policy = PLAY["sampled"](untrained(1), masked)

    def starts(some: list[int]) -> list[list[int]]:
        simulator = Batched(batch([jobsets[k] for k in some]), OF, 300, skip_forced=masked)
        play(simulator, policy, key[some])
        first = simulator.jobs.first
        return [simulator.schedule().start[first[b] : first[b + 1]].tolist() for b in range(len(some))]

    together = starts(list(range(24)))
    assert starts([17, 3, 8]) == [together[k] for k in (17, 3, 8)]


def test_episodes_of_one_jobset_are_sampled_differently() -> None:
    jobs = random_jobset(np.random.default_rng(2), OF, 15, 12)
    simulator = Batched(batch([jobs] * 8), OF, 300)
    play(simulator, PLAY["sampled"](untrained(1), masked=True), keys(3, np.zeros(8, dtype=np.int64), np.arange(8)))
    assert len({tuple(own) for own in simulator.schedule().start.reshape(8, -1).tolist()}) == 8


NUMBER, ZERO = np.arange(2000), np.zeros(2000, dtype=np.int64)


@pytest.mark.parametrize(
    ("key", "decision"),
    [(keys(1, NUMBER, ZERO), ZERO), (keys(1, ZERO, NUMBER), ZERO), (keys(1, ZERO, ZERO), NUMBER)],
    ids=["jobset", "episode", "decision"],
)
def test_draws_are_uniform_from_one_jobset_episode_or_decision_to_the_next(
    key: np.ndarray, decision: np.ndarray
) -> None:
    draws = uniform(key, decision)
    assert ((draws >= 0) & (draws < 1)).all()
    assert len(np.unique(draws)) == 2000
    counts = np.histogram(draws, bins=10, range=(0, 1))[0]
    assert ((counts - 200) ** 2 / 200).sum() < 27.9  # chi-square of 9 degrees, one in a thousand


def test_no_two_jobsets_episodes_or_seeds_share_a_key() -> None:
    seed, jobset, episode = (axis.ravel() for axis in np.meshgrid(*[np.arange(12)] * 3))
    found = [keys(int(s), jobset[seed == s], episode[seed == s]) for s in range(12)]
    assert len(np.unique(np.concatenate(found))) == 12**3


@pytest.mark.parametrize("masked", [True, False])
def test_logits_that_are_not_numbers_draw_an_action_that_there_is(masked: bool) -> None:
    logits = np.full((3, 4), np.nan, dtype=np.float32)
    assert sample(logits, np.ones((3, 4), dtype=bool), masked, np.array([0.0, 0.5, 0.99])).tolist() == [3, 3, 3]
