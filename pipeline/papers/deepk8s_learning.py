"""How fast PPO, A3C and DAgger learn, and to what level: Deepk8s's Figure 6.

The paper draws the total reward of an episode over iterations, whose size in episodes it does not give: ours are
updates, and who is faster is judged by both. The levels are of the test jobsets.
"""

from math import inf
from typing import TYPE_CHECKING

from pipeline.comparing import plots
from pipeline.papers.curves import course, points, races
from pipeline.papers.deepk8s import AS_GOOD, HEURISTICS, SLOWDOWN, ranked
from pipeline.papers.evidence import Evidence
from pipeline.papers.rules import CANNOT, NO, YES
from pipeline.papers.verdicts import WHOLE, Part, Shown, Source, Verdict, compared, judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHMS = ("ppo", "a3c", "dagger")


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figure of the agents' learning."""
    title = f"Learning on scenario {evidence.roles.scenario}"
    drawing = _draw(evidence, title)
    return [Shown(f"deepk8s_learning_{evidence.roles.scenario}", title, drawing, judged(CLAIMS, evidence))]


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


def _about(algorithm: str, iterations: int) -> Part:
    """Return the part of a claim that an algorithm converges after so many iterations: in that tenth of a run."""

    def judge(evidence: Evidence, agent: str) -> Verdict:
        found = course(evidence, evidence.roles.lead_by(algorithm))
        text = f"converged: {found}"
        if found.ran < iterations:
            return Verdict(f"{text}; a run of less than {iterations} cannot tell", CANNOT, [found.agent])
        word = NO if not found.after < iterations <= found.by else CANNOT if found.by == inf else YES
        return Verdict(text, word, [found.agent])

    left = f"the tenth of the run in which it converges leaves out update {iterations}"
    return Part(f"after about {iterations:,} iterations", left, judge)


def _sooner(one: str, other: str, text: str) -> tuple[Part, Part]:
    return races(text, lambda evidence, _: (evidence.roles.lead_by(one), evidence.roles.lead_by(other)))


SIX = Source("Deepk8s, Figure 6")
CLAIMS = (
    SIX.claim("PPO converges after about 1,000 iterations", _about("ppo", 1000)),
    SIX.claim(
        "A3C converges much later than PPO, to the same level",
        *_sooner("ppo", "a3c", "PPO sooner"),
        compared("the same level", AS_GOOD, ranked(SLOWDOWN, "a3c", "ppo")),
    ),
    SIX.claim(
        "DAgger converges first, after about 500 iterations",
        *_sooner("dagger", "ppo", "before PPO"),
        *_sooner("dagger", "a3c", "before A3C"),
        _about("dagger", 500),
    ),
    SIX.claim(
        "DAgger ends only as good as SJF, its expert", compared(WHOLE, AS_GOOD, ranked(SLOWDOWN, "dagger", "sjf"))
    ),
)
