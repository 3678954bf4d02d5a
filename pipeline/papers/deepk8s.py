"""Slowdown, completion time, makespan and learning on many machines: Deepk8s's Figures 4 to 6 and Table 1.

Claims are judged at every load of the scenario; the paper has one log of unknown load. Differences are relative
to the other policy, on the same jobsets. Deepk8s is Zhao and Sun 2021; see docs/systems/deepk8s.md.

Figure 6 draws the total reward of an episode over iterations, whose size in episodes the paper does not give. Ours are
updates, and speed is judged by updates and by episodes. Final levels are those on the test jobsets.
"""

from collections.abc import Callable
from math import inf

from matplotlib.figure import Figure

from pipeline.comparing import plots
from pipeline.papers.curves import convergence, points, races
from pipeline.papers.evidence import SLOWDOWN, Evidence, Metric, OfJobs, versus, whiskers
from pipeline.papers.roles import NAMES, Roles
from pipeline.papers.rules import ABOVE, BELOW, NO, UNDECIDED, YES, Rule, at_least, at_most, below_by, within
from pipeline.papers.verdicts import WHOLE, Claim, Finding, Part, Shown, claims_of, compared, judged

ALGORITHMS = ("ppo", "a3c", "dagger")
HEURISTICS = ("fcfs", "random", "sjf", "tetris")  # the paper's
COMPLETION, MAKESPAN = "completion_time", "makespan"
LEAST, MOST = 0.075, 0.135  # shares of a heuristic's slowdown: how far PPO is below, by the abstract and section 5
BELOW_SJF = 0.002  # a share of SJF's completion time
# The paper gives no number for "nearly no difference": here it is less than the least gain that the paper reports.
AS_GOOD = within(LEAST, "the least gain in slowdown that the paper reports")
AS_SOON = within(BELOW_SJF, "the least gain in time that the paper reports")
ROOM = 1.12  # next to the bars, for their numbers


def policies_shown(roles: Roles) -> list[str]:
    """Return the policies whose per-job results are needed: the paper's heuristics, and agents for slowdown."""
    return [*HEURISTICS, *roles.of("slowdown")]


def short(evidence: Evidence, _load: int = 0) -> OfJobs:
    """Return the measure of short tasks: mean completion time of those that run for at most `evidence.long`."""
    return OfJobs(COMPLETION, 0, evidence.long, f"tasks of at most {evidence.long:.4g}")


def long(evidence: Evidence, _load: int = 0) -> OfJobs:
    """Return the measure of long tasks: mean completion time of those that run longer than `evidence.long`."""
    return OfJobs(COMPLETION, evidence.long, inf, f"tasks of more than {evidence.long:.4g}")


def shown(evidence: Evidence) -> list[Shown]:
    """Return the figures of mean slowdown, of completion time and of learning, each with its claims."""
    name = evidence.roles.scenario
    learning = f"Learning on scenario {name}"
    slow, took = f"Mean slowdown of tasks, scenario {name}", f"Mean completion time of tasks, scenario {name}"
    return [
        Shown(f"deepk8s_slowdown_{name}", slow, _slowdown(evidence, slow), judged(OF_SLOWDOWN, evidence)),
        Shown(f"deepk8s_completion_{name}", took, _completion(evidence, took), judged(OF_COMPLETION, evidence)),
        Shown(f"deepk8s_learning_{name}", learning, _learning(evidence, learning), judged(OF_LEARNING, evidence)),
    ]


def _slowdown(evidence: Evidence, title: str) -> Figure:
    loads, policies = evidence.loads, evidence.policies
    titles = [f"Load {load} %" for load in loads]
    figure, panels = plots.panels(titles, 0.7 + (0.9 + 0.26 * len(policies)) * len(loads))
    figure.suptitle(title, x=0.01, ha="left")
    looks = plots.looks(policies, evidence.roles.agents)
    for axes, load in zip(panels, loads, strict=True):
        for place, policy in enumerate(policies):
            mean = evidence.mean(SLOWDOWN, load, policy)
            # Bars begin at 1, the lower limit: policies differ in the part above it.
            axes.barh(place, mean.value - 1, left=1, xerr=whiskers([mean]), color=looks[policy].colour, height=0.7)
            axes.annotate(f"{mean.value:.3f}", (mean.high, place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(policies)), policies)
        axes.invert_yaxis()
        axes.set_xlim(1, 1 + ROOM * (axes.get_xlim()[1] - 1))
        axes.grid(visible=False, axis="y")
    panels[-1].set_xlabel("Mean slowdown, from 1 on (ratio; whisker: its interval)")
    return figure


def _completion(evidence: Evidence, title: str) -> Figure:
    kinds: dict[Metric, str] = {
        short(evidence): f"Short tasks (at most {evidence.long:.4g} time units)",
        long(evidence): "Long tasks",
        COMPLETION: "All tasks",
    }
    there = {metric: label for metric, label in kinds.items() if evidence.has(metric)}
    figure, panels = plots.panels(list(there.values()), 1.0 + 2.2 * len(there))
    width = 0.8 / len(evidence.policies)  # of a bar: the policies are side by side at every load
    figure.suptitle(title, x=0.01, ha="left")
    for axes, metric in zip(panels, there, strict=True):
        for k, (policy, look) in enumerate(plots.looks(evidence.policies, evidence.roles.agents).items()):
            means = [evidence.mean(metric, load, policy) for load in evidence.loads]
            place = [at + (k + 0.5) * width - 0.4 for at in range(len(means))]
            values = [mean.value for mean in means]
            bars = axes.bar(place, values, 0.9 * width, yerr=whiskers(means), color=look.colour, label=policy)
            plots.hatch(bars, k)
        axes.set_xticks(range(len(evidence.loads)), [str(load) for load in evidence.loads])
        axes.set_ylabel("Mean (time units)")
    panels[-1].set_xlabel("Load (% of all machines; whisker: interval)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def _learning(evidence: Evidence, title: str) -> Figure | None:
    """Draw the agents that stand for the algorithms; those validated at other loads than the first are left out."""
    leads = [names[0] for names in map(evidence.roles.learned_by, ALGORITHMS) if names]
    agents = [agent for agent in leads if len(points(evidence.curves[agent], "validation"))]
    if not agents:
        return None
    loads = {agent: set(evidence.roles.agents[agent].finetune.loads) for agent in agents}
    curves = {agent: evidence.curves[agent] for agent in agents if loads[agent] == loads[agents[0]]}
    levels = {name: level for name, level in evidence.levels[agents[0]].items() if name in HEURISTICS}
    return plots.learning_curve(curves, levels, title, "validation")


def _lead(algorithm: str) -> Callable[[Evidence, str], str]:
    return lambda evidence, _: evidence.roles.lead_by(algorithm)


PPO, A3C, DAGGER = map(_lead, ALGORITHMS)


def _each(word: str, rule: Rule, metric: str | Callable[[Evidence, int], Metric]) -> list[Part]:
    """Return parts that compare PPO with each heuristic; differences are shares of the heuristic's mean."""
    return [compared(f"{word} {NAMES[name]}", rule, versus(PPO, name, metric)) for name in HEURISTICS]


def _about(algorithm: str, iterations: int) -> Part:
    """Return the statement that an algorithm converges in the tenth of its run with update `iterations`."""

    def judge(evidence: Evidence, agent: str) -> Finding:
        found = convergence(evidence, evidence.roles.lead_by(algorithm))
        text = f"converged: {found}"
        if found.ran < iterations:
            return Finding(f"{text}; a run of less than {iterations} cannot tell", UNDECIDED, [found.agent])
        word = NO if not found.after < iterations <= found.by else UNDECIDED if found.by == inf else YES
        return Finding(text, word, [found.agent])

    no_if = f"the tenth of the run in which it converges leaves out update {iterations}"
    return Part(f"after about {iterations:,} iterations", no_if, judge)


FOUR, FIVE, SIX, TABLE = "Deepk8s, Figure 4", "Deepk8s, Figure 5", "Deepk8s, Figure 6", "Deepk8s, Table 1"
# No run of ours can refute a slowdown of 1.325 and a completion time of 94.116: the paper does not name the log.
OF_SLOWDOWN = claims_of(
    FOUR,
    {
        "FCFS has the highest mean slowdown, then Random, then SJF and Tetris": [
            compared("Random below FCFS", BELOW, versus("random", "fcfs", SLOWDOWN)),
            compared("SJF below Random", BELOW, versus("sjf", "random", SLOWDOWN)),
            compared("Tetris below Random", BELOW, versus("tetris", "random", SLOWDOWN)),
        ],
        "PPO's mean slowdown is at least 7.5 % below each heuristic's": _each("below", at_least(LEAST), SLOWDOWN),
        "PPO's mean slowdown is at most 13.5 % below each heuristic's": _each("below", at_most(MOST), SLOWDOWN),
        "PPO and A3C are nearly equal in result": [compared(WHOLE, AS_GOOD, versus(A3C, PPO, SLOWDOWN))],
    },
)
LESS_TIME = compared(WHOLE, below_by(BELOW_SJF), versus(PPO, "sjf", COMPLETION))
OF_COMPLETION = [
    Claim(TABLE, "PPO has the lowest mean completion time", _each("below", BELOW, COMPLETION)),
    Claim(TABLE, "PPO's mean completion time is 0.2 % below SJF's", [LESS_TIME]),
    Claim(FIVE, "Short tasks are faster under PPO than under every heuristic", _each("than under", BELOW, short)),
    Claim(FIVE, "Long tasks are slower under PPO than under every heuristic", _each("than under", ABOVE, long)),
    Claim(TABLE, "The makespan is nearly equal under all policies", _each("PPO and", AS_SOON, MAKESPAN)),
]
OF_LEARNING = claims_of(
    SIX,
    {
        "PPO converges after about 1,000 iterations": [_about("ppo", 1000)],
        "A3C converges much later than PPO, to the same level": [
            *races("PPO sooner", PPO, A3C),
            compared("the same level", AS_GOOD, versus(A3C, PPO, SLOWDOWN)),
        ],
        "DAgger converges first, after about 500 iterations": [
            *races("before PPO", DAGGER, PPO),
            *races("before A3C", DAGGER, A3C),
            _about("dagger", 500),
        ],
        "DAgger ends only as good as SJF, its expert": [compared(WHOLE, AS_GOOD, versus(DAGGER, "sjf", SLOWDOWN))],
    },
)
