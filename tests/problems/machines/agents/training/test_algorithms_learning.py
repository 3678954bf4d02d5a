"""PPO, A3C and DAgger learn what they are for."""

import numpy as np
import pytest
from machine_learning import (
    RECIPES,
    SHAPE,
    distance,
    jobs_at_once,
    longest_first,
    solvable_task,
    some_jobs,
    tiny_task,
    untrained,
)

from pipeline.core.config import MachinesEvolution
from pipeline.core.config.machines.learning import A3c, Dagger, Ppo
from pipeline.core.types import keys
from pipeline.errors import UserError
from pipeline.problems.machines.agents.networks.actor_critic import LITTLE, ActorCritic, DeepSets, Linear
from pipeline.problems.machines.agents.networks.features import THERE, Features
from pipeline.problems.machines.agents.networks.loading import greedy
from pipeline.problems.machines.agents.training.a3c import a3c
from pipeline.problems.machines.agents.training.algorithms import Pool, by_others, dagger, ppo
from pipeline.problems.machines.agents.training.evolution import (
    costs,
    evolution,
    play_candidates,
    play_rule,
    set_weights,
    weights_in,
)
from pipeline.problems.machines.agents.training.task import MOST_JOBSETS, Task, Trajectory, by_critic, record
from pipeline.problems.machines.env.nouns import end_to_end
from pipeline.problems.machines.env.teachers import TEACHERS
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.simulation.rollout import play

BUDGET = {"recipe": "", "loads": (100,), "validate_every": 1}


def cost(task: Task, network: ActorCritic | None, heuristic: str = "") -> float:
    """Mean slowdown on jobsets that nobody learned from."""
    jobsets = [some_jobs(100, 90_000 + k) for k in range(40)]
    simulator = task.begin(jobsets)
    policy = HEURISTICS[heuristic] if network is None else greedy(network)
    play(simulator, policy, keys(1, np.arange(40), np.zeros(40, dtype=np.int64)))
    return float((-simulator.gained / 20).mean())


def learned(name: str, **changes: object) -> ActorCritic:
    """Weights after the last update, none of which was chosen by how well it plays."""
    network, task = longest_first(), solvable_task(RECIPES[name].model_copy(update=changes))
    if name == "ppo":
        updates = ppo(network, task, Ppo(name="ppo", updates=25, jobsets=6, episodes=4, **BUDGET))
    else:
        updates = a3c(network, task, A3c(name="a3c", workers=1, updates=60, jobsets=12, **BUDGET))
    assert len(list(updates)) == {"ppo": 25, "a3c": 60}[name]
    return network


@pytest.mark.parametrize(
    ("name", "changes"),
    [("ppo", {}), ("ppo", {"advantage": "leave_one_out"}), ("a3c", {})],
    ids=["ppo", "ppo, other episodes as its baseline", "a3c"],
)
def test_the_worst_order_is_unlearned_for_the_best_there_is(name: str, changes: dict[str, object]) -> None:
    """Random play is 142 % off, this start 286 %. Of eight starts worse than random, none ended more than 0.1 % off."""
    assert distance(longest_first()) > 2.5
    assert distance(learned(name, **changes)) < 0.02


def test_two_processes_play_with_the_newest_weights() -> None:
    """Which process is the faster says nothing: the order in which their gradients come is not compared."""
    still, learning = (RECIPES["a3c"].model_copy(update={"learning_rate": rate}) for rate in (1e-30, 0.01))
    alone, both = (A3c(name="a3c", workers=count, updates=12, jobsets=6, **BUDGET) for count in (1, 2))
    first = {tuple(update.metrics.items()) for update in a3c(untrained(), tiny_task(still), alone)}
    updates = list(a3c(untrained(), tiny_task(learning), both))
    assert [update.step for update in updates] == list(range(1, 13))
    told = {tuple(update.metrics.items()) for update in updates}
    assert len(told) == 12
    # Two are asked at once, of the first weights; what is asked later is played with weights that were learned since.
    assert 1 <= len(told & first) <= 2


@pytest.mark.parametrize("trace", [0.0, 0.5, 1.0])
def test_a3c_takes_costs_to_come_as_far_as_its_trace_goes(trace: float) -> None:
    task, network = tiny_task(RECIPES["a3c"].model_copy(update={"trace": trace})), untrained()
    jobsets, key = task.draw(1, 3), keys(task.seed, MOST_JOBSETS + np.arange(3), np.zeros(3, dtype=np.int64))
    played = record(network, task.begin(jobsets), key)
    gain, _ = by_critic(played, gamma=1.0, trace=trace, scale=float(played.cost.std()))
    first = next(iter(a3c(network, task, A3c(name="a3c", workers=1, updates=1, jobsets=3, **BUDGET))))
    assert first.metrics["actor_loss"] == pytest.approx(-(played.log_chance * gain).mean(), rel=1e-5)


def test_a3c_with_one_process_is_better_than_random_by_its_last_update() -> None:
    task, network = tiny_task(RECIPES["a3c"]), untrained()
    list(a3c(network, task, A3c(name="a3c", workers=1, updates=50, jobsets=6, **BUDGET)))
    assert cost(task, network) < cost(task, None, "random") * 0.9


def test_dagger_comes_to_do_what_its_teacher_does() -> None:
    task, network = tiny_task(RECIPES["dagger"]), untrained()
    updates = list(dagger(network, task, Dagger(name="dagger", teacher="sjf", updates=60, jobsets=4, **BUDGET)))
    assert updates[-1].metrics["accuracy"] > 0.9 > updates[0].metrics["accuracy"]
    assert cost(task, network) == pytest.approx(cost(task, None, "sjf"), rel=0.05)


def test_a_network_may_begin_as_shortest_job_first() -> None:
    task, jobsets = tiny_task(RECIPES["ppo"]), [some_jobs(100, k) for k in range(10)]
    key, starts = keys(1, np.arange(10), np.zeros(10, dtype=np.int64)), []
    for policy in (greedy(DeepSets(SHAPE, 8, "sjf")), HEURISTICS["sjf"]):
        simulator = task.begin(jobsets)
        play(simulator, policy, key)
        starts.append(simulator.placed().start.tolist())
    assert starts[0] == starts[1]


def test_evolution_becomes_better() -> None:
    task, network = tiny_task(RECIPES["evolution"]), untrained("linear")
    assert isinstance(network, Linear)
    set_weights(network, -weights_in(network))  # largest area first, and void before any job
    start = cost(task, network)
    how = MachinesEvolution(name="evolution", base="sjf", tail=0.1, updates=15, jobsets=8, **BUDGET)
    list(evolution(network, task, how))
    assert cost(task, network) < 0.8 * start


def some_candidates(network: Linear, count: int) -> np.ndarray:
    mean = weights_in(network)
    return mean + np.random.default_rng(2).normal(0, 2.0, (count, len(mean)))


def test_candidates_play_compiled_as_their_networks_do() -> None:
    """Void too: its score is near those of jobs here, and a third of the candidates let some fitting job wait."""
    task, network = tiny_task(RECIPES["evolution"]), untrained("linear")
    assert isinstance(network, Linear)
    jobsets, key = [some_jobs(100, k) for k in range(4)], keys(1, np.arange(4), np.zeros(4, dtype=np.int64))
    set_weights(network, np.where(weights_in(network) == LITTLE, -1.0, weights_in(network)))
    candidates = some_candidates(network, 6)
    together = task.begin(jobsets * len(candidates))
    play_candidates(network, together, candidates)
    for k, weights in enumerate(candidates):
        alone = task.begin(jobsets)
        set_weights(network, weights)
        play(alone, greedy(network), key)
        assert together.gained[4 * k : 4 * k + 4].tolist() == alone.gained.tolist()
        assert together.placed().start[80 * k : 80 * k + 80].tolist() == alone.placed().start.tolist()


def test_a_candidate_that_plays_as_the_rule_costs_one_and_the_weight_of_the_tail() -> None:
    task = tiny_task(RECIPES["evolution"])
    jobsets = [some_jobs(100, k) for k in range(4)]
    base, tried = task.begin(jobsets), task.begin(jobsets * 2)
    play_rule(base, TEACHERS["sjf"])
    play_rule(tried, TEACHERS["sjf"])
    assert costs(tried, base, task, tail=0.25, unit=1.0).tolist() == [1.25, 1.25]


def test_what_a_candidate_costs_is_a_share_of_the_rule_at_each_load_and_of_its_tail() -> None:
    """One job of a time unit at once, another of ten; the machine holds one of them at a time."""
    task = solvable_task(RECIPES["evolution"])._replace(loads=[50, 100])
    both = jobs_at_once(100, 1)
    short_long = both._replace(duration=np.array([1.0, 10.0, 1.0, 1.0]), estimate=np.array([1.0, 10.0, 1.0, 1.0]))
    base, tried = task.begin([short_long, short_long]), task.begin([short_long, short_long])
    play_rule(base, TEACHERS["sjf"])  # starts at 0, 1, 2 and, the long one, 3: slowdowns 1, 2, 3 and 1.3
    play_rule(tried, TEACHERS["fcfs"])  # starts at 0, 1, 11 and 12: slowdowns 1, 1.1, 12 and 13
    found = costs(tried, base, task, tail=0.5, unit=1.0)
    p99 = (11 + 0.97 + 1) / (2 + 0.97 + 1)
    assert found == pytest.approx([27.1 / 7.3 + 0.5 * (p99 + 13 / 4) / 2])


def test_a_learning_rate_without_bounds_is_told_in_one_line() -> None:
    task = tiny_task(RECIPES["ppo"].model_copy(update={"learning_rate": 1e30, "clip": None}))
    with pytest.raises(UserError, match="gradient is not finite"):
        list(ppo(untrained(), task, Ppo(name="ppo", updates=5, jobsets=2, episodes=2, **BUDGET)))


def played(spent: list[list[float]], now: list[list[float]], total: list[float], end: list[float]) -> Trajectory:
    """Recorded play of which only times and costs matter."""
    episode = np.repeat(np.arange(len(spent)), [len(row) for row in spent])
    turn = np.concatenate([np.arange(len(row)) for row in spent])
    count = len(episode)
    nothing = Features(*(np.zeros((count, 1)) for _ in range(5)))
    flat = [np.concatenate(rows).astype(float) for rows in (now, spent)]
    zero = np.zeros(count)
    return Trajectory(nothing, zero, zero, zero, episode, turn, *flat, np.array(total), np.array(end), zero[:0])


class TestAdvantages:
    def test_by_the_critic_is_the_return_where_it_knows_nothing(self) -> None:
        # Episode 0 has cost 0 at its first decision, 2 at its second, 8 at its end: returns -8 and -6, halved.
        one = played([[0.0, 2.0], [1.0]], [[0.0, 1.0], [0.0]], [8.0, 4.0], [3.0, 2.0])
        gain, target = by_critic(one, gamma=1.0, trace=1.0, scale=2.0)
        assert gain.tolist() == target.tolist() == [-4.0, -3.0, -1.5]

    def test_by_others_compares_at_the_same_time(self) -> None:
        # At time 1 the other episode, which goes from cost 0 at time 0 to 6 at time 3, has spent 2: 4 are to come.
        one = played([[0.0, 1.0], [0.0]], [[0.0, 1.0], [0.0]], [8.0, 6.0], [3.0, 3.0])
        assert by_others(one, episodes=2).tolist() == [6.0 - 8.0, 4.0 - 7.0, 8.0 - 6.0]

    def test_by_others_takes_an_episode_that_is_over_to_have_nothing_to_come(self) -> None:
        one = played([[0.0, 5.0], [0.0]], [[0.0, 10.0], [0.0]], [6.0, 2.0], [12.0, 4.0])
        assert by_others(one, episodes=2)[1] == 0.0 - 1.0


def test_costs_of_recorded_play_add_up_to_the_slowdowns() -> None:
    task = tiny_task(RECIPES["ppo"])
    jobsets = [some_jobs(100, k) for k in range(3)]
    simulator = task.begin(jobsets)
    found = record(untrained(), simulator, keys(1, np.arange(3), np.zeros(3, dtype=np.int64)))
    jobs, placed = end_to_end(jobsets), simulator.placed()
    slowdown = ((placed.finish - jobs.arrival) / jobs.duration).reshape(3, -1).sum(axis=1)
    assert found.cost == pytest.approx(slowdown, rel=1e-12)


def test_the_teacher_is_asked_in_the_states_of_the_learner() -> None:
    task = tiny_task(RECIPES["dagger"])
    found = record(untrained(), task.begin([some_jobs(100, 1)]), np.array([7], dtype=np.uint64), TEACHERS["sjf"])
    assert len(found.taught) == len(found.action)
    assert found.observed.may[np.arange(len(found.taught)), found.taught].all()
    assert (found.taught != found.action).any()


def test_a_pool_forgets_the_oldest() -> None:
    pool = Pool(most=3)
    for value in (1, 2):
        pool.add(Features(*(np.full((2, 1), value) for _ in range(5))), np.full(2, value))
    observed, action = pool.take(np.arange(3))
    assert action.tolist() == [1, 2, 2]
    assert observed.rest[:, 0].tolist() == [1, 2, 2]


@pytest.mark.parametrize("kind", ["vector", "deepsets"])
def test_a_network_knows_no_illegal_action(kind: str) -> None:
    task = tiny_task(RECIPES["ppo"])
    found = record(untrained(kind), task.begin([some_jobs(100, 5)]), np.array([1], dtype=np.uint64))
    assert found.observed.may[np.arange(len(found.action)), found.action].all()


def test_deepsets_take_any_number_of_jobs_and_machines_and_do_not_mind_their_order() -> None:
    network = untrained()
    rng = np.random.default_rng(1)
    job = rng.random((1, 5, SHAPE.of_job)).astype(np.float32)
    job[:, :, THERE] = 1
    machine = rng.random((1, 3, SHAPE.of_machine)).astype(np.float32)
    pair = rng.random((1, 5, 3, SHAPE.of_pair)).astype(np.float32)
    rest, may = rng.random((1, SHAPE.of_rest)).astype(np.float32), np.ones((1, 16), dtype=bool)
    from pipeline.problems.machines.agents.networks.loading import forward

    one = forward(network, Features(job, machine, pair, rest, may))[0]
    jobs, machines = rng.permutation(5), rng.permutation(3)
    moved = Features(job[:, jobs], machine[:, machines], pair[:, jobs][:, :, machines], rest, may)
    other = forward(network, moved)[0]
    assert other[:-1].reshape(5, 3) == pytest.approx(one[:-1].reshape(5, 3)[jobs][:, machines], abs=1e-5)
    assert other[-1] == pytest.approx(one[-1], abs=1e-5)
