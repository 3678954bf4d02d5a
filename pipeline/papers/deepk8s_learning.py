"""How fast PPO, A3C and DAgger learn, and to what level: Deepk8s's Figure 6.

The paper draws the total reward of an episode, we the mean cost of a job on validation jobsets, by the recipe's play;
for slowdown that is the mean slowdown. Validation is kept as one mean, so nothing here has an interval. An iteration of
the paper has no given size; ours is an update, of the episodes that each finding tells.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.comparing import plots
from pipeline.papers.curves import NEAR, first_near_best, points, validated
from pipeline.papers.deepk8s import HEURISTICS
from pipeline.papers.evidence import Evidence
from pipeline.papers.verdicts import CANNOT, CannotTellError, Claim, Shown, Verdict, decided, judged, side, together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHMS = ("ppo", "a3c", "dagger")
PPO_AFTER, DAGGER_AFTER = 1000, 500  # iterations
ABOUT = 0.25  # of those: nearer than this is the same
MUCH = 2  # times as many updates are much later


class Course(NamedTuple):
    """How the learning of one agent went."""

    agent: str
    took: int  # updates until validation was near its best
    best: float  # validation
    updates: int  # that were run
    episodes: int  # of an update
    loads: tuple[int, ...]


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figure of the agents' learning."""
    title = f"Learning on scenario {evidence.roles.scenario}"
    drawing = _draw(evidence, title)
    return [Shown(f"deepk8s_learning_{evidence.roles.scenario}", title, drawing, judged(CLAIMS, evidence))]


def course(evidence: Evidence, algorithm: str) -> Course:
    """Return how the agent learned that stands for an algorithm.

    Raises:
        CannotTellError: there is none, or it was never judged.
    """
    agent = evidence.roles.lead_by(algorithm)
    curve, part = evidence.curves[agent], evidence.roles.agents[agent].finetune
    best, took = min(validated(curve, agent).values()), first_near_best(curve, agent)
    episodes = part.jobsets * getattr(part, "episodes", 1)
    return Course(agent, took, best, part.updates, episodes, tuple(sorted(part.loads)))


def _draw(evidence: Evidence, title: str) -> "Figure | None":
    """Draw the agents that stand for the algorithms; those validated at other loads than the first are left out."""
    agents = [names[0] for names in map(evidence.roles.learned_by, ALGORITHMS) if names]
    judged_ones = [agent for agent in agents if len(points(evidence.curves[agent], "validation"))]
    if not judged_ones:
        return None
    first, rows = judged_ones[0], evidence.roles.agents
    alike = [agent for agent in judged_ones if {*rows[agent].finetune.loads} == {*rows[first].finetune.loads}]
    curves = {agent: evidence.curves[agent] for agent in alike}
    levels = {name: level for name, level in evidence.levels[first].items() if name in HEURISTICS}
    return plots.learning_curve(curves, levels, title, "validation")


def _ppo_takes(evidence: Evidence) -> Verdict:
    found = course(evidence, "ppo")
    return Verdict(f"{_in_words([found])}; {_rule(PPO_AFTER)}", _about(found, PPO_AFTER))


def _a3c_later(evidence: Evidence) -> Verdict:
    ppo, a3c = course(evidence, "ppo"), course(evidence, "a3c")
    _must_be_alike(ppo, a3c)
    level = decided(abs(a3c.best - ppo.best) <= NEAR * ppo.best)
    later = decided(a3c.took >= MUCH * ppo.took and a3c.took > ppo.took, a3c.took > ppo.took)
    text = f"best validation {a3c.best:.3f}, {ppo.best:.3f} of {ppo.agent}: {side(a3c.best / ppo.best - 1)}"
    note = f"much later means {MUCH} times as many updates, the same level within {100 * NEAR:g} %"
    return Verdict(f"{_in_words([ppo, a3c])}; {a3c.agent}: {text}; {note}", together([later, level]))


def _dagger_first(evidence: Evidence) -> Verdict:
    found = course(evidence, "dagger")
    others = [course(evidence, name) for name in ALGORITHMS[:2] if evidence.roles.learned_by(name)]
    sooner = [found.took < other.took for other in others]
    first = decided(all(sooner), any(sooner)) if others else CANNOT
    return Verdict(
        f"{_in_words([found, *others])}; {_rule(DAGGER_AFTER)}", together([_about(found, DAGGER_AFTER), first])
    )


def _dagger_like_sjf(evidence: Evidence) -> Verdict:
    found = course(evidence, "dagger")
    level = evidence.levels[found.agent]["sjf"]
    teacher = getattr(evidence.roles.agents[found.agent].finetune, "teacher", "")
    text = f"best validation of {found.agent} {found.best:.3f}, sjf {level:.3f}: {side(found.best / level - 1)}"
    note = f"taught by {teacher}; as good means within {100 * NEAR:g} %"
    return Verdict(f"{text}; {note}", decided(abs(found.best - level) <= NEAR * level))


def _about(found: Course, iterations: int) -> str:
    """Return whether an agent converged after about as many updates; a shorter run cannot tell."""
    if found.updates < iterations:
        return CANNOT
    near = abs(found.took - iterations) <= ABOUT * iterations
    return decided(near, iterations / 2 <= found.took <= 2 * iterations)


def _rule(iterations: int) -> str:
    return f"yes means within {100 * ABOUT:g} % of {iterations}, partly within a factor of 2; a shorter run cannot tell"


def _in_words(found: Sequence[Course]) -> str:
    each = [f"{one.agent} after update {one.took} of {one.updates} (of {one.episodes} episodes each)" for one in found]
    return f"within {100 * NEAR:g} % of its own best validation: {', '.join(each)}"


def _must_be_alike(one: Course, other: Course) -> None:
    if one.loads != other.loads:
        raise CannotTellError(f"{one.agent} and {other.agent} were validated at other loads")


SIX = "Deepk8s, Figure 6"
CLAIMS = (
    Claim(SIX, "PPO converges after about 1,000 iterations", _ppo_takes),
    Claim(SIX, "A3C converges much later than PPO, to the same level", _a3c_later),
    Claim(SIX, "DAgger converges first, after about 500 iterations", _dagger_first),
    Claim(SIX, "DAgger ends only as good as SJF, its expert", _dagger_like_sjf),
)
