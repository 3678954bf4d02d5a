"""Evidence that refutes each part of each claim, supports it, and leaves it undecided."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deepk8s_evidence import ALL, COMPLETION, SLOWDOWN, TASKS, few, learner
from papers_evidence import HEURISTICS, agent, curve, evidence, falling, rising

from pipeline.papers.evidence import Evidence
from pipeline.papers.rules import NO, UNDECIDED, YES
from pipeline.papers.verdicts import Claim

Made = Callable[[], tuple[Evidence, str]]  # the evidence, and the agent in question
LOADS = (70, 90, 110, 130)
TIME = {"shallow_time": agent("mlp", "completion_time"), "deep_time": agent("cnn", "completion_time")}
BOTH = {"shallow": agent(), "deep": agent("cnn", cloned=True), **TIME}
MADE: dict[bytes, Evidence] = {}
RULES = {"SJF": "sjf", "Packer": "packer", "Tetris": "tetris", "Random": "random", "FCFS": "fcfs"}

# Slowdown by job length, and the number of steps for which such jobs are withheld.
UNFAIR = {1: (9.0, 0), 3: (7.0, 0), 10: (2.0, 0), 15: (2.0, 0)}
FAIR = {1: (2.0, 0), 3: (2.0, 0), 10: (3.0, 2), 15: (4.0, 2)}
ALL_WAIT = {1: (9.0, 1), 3: (7.0, 1), 10: (2.0, 0), 15: (2.0, 0)}


def line(*values: float) -> dict[int, float]:
    """Values by load."""
    return dict(zip(LOADS, values, strict=True))


def once(make: Callable[..., Evidence], **given: Any) -> Evidence:
    """Evidence of one kind, made once for all cases that ask for the same; no case changes it."""
    key = pickle.dumps((make.__name__, given))
    if key not in MADE:
        MADE[key] = make(**given)
    return MADE[key]


def pool(name: str = "", **given: Any) -> Made:
    """Evidence of a pooled cluster, and the agent in question."""
    return lambda: (once(evidence, **given), name)


def slow(name: str = "", agents: Any = None, **slowdown: Any) -> Made:
    """Evidence with other slowdowns."""
    return pool(name, agents=agents, slowdown=slowdown)


def machines(**given: Any) -> Made:
    """Evidence of many machines."""
    return lambda: (once(few, **given), "")


def words(yes: Made, no: Made, cannot: Made) -> dict[str, Made]:
    """The three cases of a part."""
    return {YES: yes, NO: no, UNDECIDED: cannot}


NOBODY = pool(agents={})
THREE = ("SJF", "Packer", "Tetris")
LOAD_FIGURES = {
    "Mean slowdown rises with load": {"": words(pool(), slow(shallow=line(2, 3, 2.5, 4)), NOBODY)},
    "SJF has a lower slowdown than Packer": {"": words(pool(), slow(packer=1.95), slow(packer=2.0))},
    "Tetris has a lower slowdown than both": {
        "than SJF": words(pool(), slow(tetris=3.0), slow(tetris=2.0)),
        "than Packer": words(pool(), slow(tetris=4.5), slow(tetris=4.0)),
    },
    "DeepRM is comparable to": {
        **{f"nowhere worse than {name}": words(pool(), slow(shallow=9.0), NOBODY) for name in THREE},
        **{
            f"often better than {name}": words(pool(), slow(shallow=9.0), slow(shallow=HEURISTICS[RULES[name]]))
            for name in THREE
        },
    },
    "DeepRM has a lower slowdown than Tetris": {"": words(pool(), slow(shallow=line(2, 2, 2, 9)), slow(shallow=1.9))},
    "DeepRM2 is below DeepRM, and": {
        "DeepRM2 below DeepRM": words(slow(deep=1.4), slow(deep=1.6), pool()),
        "DeepRM below SJF": words(pool(), slow(shallow=2.5), slow(shallow=2.0)),
    },
    "SJF is below Tetris and Random": {
        "below Tetris": words(pool(), slow(packer=1.9), slow(packer=2.0)),
        "below Random": words(pool(), slow(random=1.9), slow(random=2.0)),
    },
    "Tetris is below Random at loads": {
        "below Random under 90 %": words(pool(), slow(random=1.0), pool(loads=[99])),
        "above Random over 90 %": words(slow(packer=9.0), slow(tetris=9.0), pool(loads=[70])),
    },
}


def timed(**completion: float) -> Made:
    """Evidence of agents for both objectives, with completion times at 130 %."""
    return pool(agents=BOTH, completion={name: line(9, 9, 9, value) for name, value in completion.items()})


def both(**slowdown: Any) -> Made:
    """Evidence of agents for both objectives."""
    return slow(agents=BOTH, **slowdown)


AT_130 = {name: 3 * (value + 1.3) for name, value in HEURISTICS.items()}  # completion times
OBJECTIVE_FIGURES = {
    "At 130 % Tetris": {
        "slowdown, before SJF": words(pool(), slow(tetris=3.0), slow(tetris=2.0)),
        "slowdown, before Packer": words(pool(), slow(tetris=4.5), slow(tetris=4.0)),
        **{
            f"completion time, before {name}": words(
                pool(), timed(tetris=99.0), timed(tetris=AT_130[rule], **{rule: AT_130[rule]})
            )
            for name, rule in (("SJF", "sjf"), ("Packer", "packer"))
        },
    },
    "At 130 % DeepRM trained for slowdown": {
        **{f"below {n}": words(both(), both(shallow=9.0), both(shallow=HEURISTICS[RULES[n]])) for n in THREE},
        "below DeepRM trained for completion time": words(both(shallow_time=1.7), both(shallow_time=1.4), both()),
    },
    "At 130 % DeepRM trained for completion time": {
        **{f"below {n}": words(timed(shallow_time=2), timed(shallow_time=99), pool()) for n in THREE},
        "below DeepRM trained for slowdown": words(timed(shallow_time=2), timed(shallow_time=99), pool()),
    },
    "At 70 % DeepRM2 has a lower slowdown": {"": words(slow(deep=1.4), slow(deep=1.6), pool())},
    "At 70 % DeepRM2 trained for completion time": {
        "": words(
            pool(agents=BOTH, completion={"deep_time": line(2, 9, 9, 9)}),
            pool(agents=BOTH, completion={"deep_time": line(99, 9, 9, 9)}),
            pool(),
        )
    },
}


def learned(name: str, curves: Any, **given: Any) -> Made:
    """Evidence with one agent's curve."""
    return pool(name, curves={name: curves}, **given)


def returns(first: float, last: float, metric: str = "mean_return") -> Any:
    """A curve of one metric, with ups and downs."""
    return curve(**{metric: {k: first + (last - first) * k / 20 + (-1) ** k * 0.01 for k in range(1, 21)}})


def rises(name: str, **given: Any) -> dict[str, dict[str, Made]]:
    """The cases of the claim that returns rise and slowdown falls."""

    def moved(metric: str, up: bool) -> dict[str, Made]:
        curves = [returns(*ends, metric) for ends in ((1, 2), (2, 1), (1, 1))]
        good, bad, flat = (learned(name, found, **given) for found in curves)
        return words(good, bad, flat) if up else words(bad, good, flat)

    return {
        "mean return rises": moved("mean_return", up=True),
        "best return rises": moved("best_return", up=True),
        "slowdown falls": moved("slowdown", up=False),
    }


def narrowing(first: float, last: float) -> Any:
    """A curve whose best and mean return have these gaps at its start and end."""
    gap = {k: first + (last - first) * k / 20 for k in range(1, 21)}
    return curve(mean_return=dict.fromkeys(gap, -20.0), best_return={k: value - 20 for k, value in gap.items()})


def race(deep: int, shallow: int) -> Made:
    """Evidence with the updates, of 100, at which DeepRM2 and DeepRM converge."""
    ends = {"deep": deep, "shallow": shallow}
    agents = {"shallow": agent(**SMALL), "deep": agent("cnn", **SMALL)}
    return pool(
        "deep", agents=agents, curves={name: curve(slowdown=falling(until, 100)) for name, until in ends.items()}
    )


OFF = {"off": agent("cnn", cloned=True)}
SMALL = {"jobsets": 5, "episodes": 4}
AT_ONCE = {"agents": OFF, "loads": [100], "setting": "offline"}
SHORT = {"agents": {"shallow": agent(), "deep": agent("cnn", loads=(70,))}}
LEARNING_FIGURES = {
    "DeepRM, Figure 6": {
        "Before training": {
            "": words(
                slow("shallow"),
                slow("shallow", shallow_pretrained=4.5),
                pool("shallow", agents={"shallow": agent(cloned=True)}),
            )
        },
        "After 200 iterations": {
            text: words(
                *(
                    learned("shallow", curve(validation={0: 9.0, after: value}))
                    for after, value in ((asked, 3.0), (asked, 8.0), (50, 8.0))
                )
            )
            for text, asked in (("after as many updates", 200), ("after as many episodes (2,000 an iteration)", 900))
        },
        "Mean and best return rise": rises("shallow"),
        "The gap between best": {
            "": words(*(learned("shallow", narrowing(*ends)) for ends in ((12, 2), (2, 12), (5, 5))))
        },
    },
    "DeepRM2, Figure 5": {
        "Mean and best return rise": rises("deep"),
        "DeepRM2 ends with": {
            "a higher return": words(
                learned("deep", rising(last=-30)), learned("deep", rising(last=-50)), pool("deep", **SHORT)
            ),
            "a lower slowdown": words(slow("deep", deep=1.4), slow("deep", deep=1.6), pool("deep")),
        },
        "DeepRM2 converges": {
            f"sooner, by {unit}": words(race(deep=20, shallow=60), race(deep=60, shallow=20), race(deep=40, shallow=40))
            for unit in ("updates", "episodes")
        },
    },
    "DeepRM_Off, Figure 7": {
        "Mean and best return rise": rises("off", **AT_ONCE),
        "The return rises to its maximum": {
            text.format("to its best"): words(
                *(learned("off", returns(*ends, metric), **AT_ONCE) for ends in ((first, last), (last, first), (1, 1)))
            )
            for text, metric, first, last in (
                ("mean return rises {}", "mean_return", 1, 2),
                ("slowdown falls {}", "slowdown", 2, 1),
            )
        },
        "DeepRM_Off ends below": {
            f"below {name}": words(
                *(pool("off", **AT_ONCE, slowdown={"off": mean}) for mean in (1.0, 9.0, HEURISTICS[RULES[name]]))
            )
            for name in ("SJF", "Tetris", "Random")
        },
    },
}


def by_length(name: str = "deep", **lengths: Any) -> Made:
    """Evidence with outcomes by job length."""
    return pool(name, by_length=lengths)


SAME = dict.fromkeys((1, 3, 10, 15), (1.5, 0))
LENGTH_FIGURES = {
    "After training, short jobs": {
        "than under Random, the paper's before": words(
            by_length(random=UNFAIR, deep=FAIR), by_length(random=FAIR, deep=UNFAIR), by_length()
        )
    },
    "Short jobs tend to go first": {"": words(by_length(deep=FAIR), by_length(deep=ALL_WAIT), by_length(deep=UNFAIR))},
    "DeepRM2 is better than DeepRM for short": {
        kind: words(by_length(deep=SAME), by_length(shallow=SAME), by_length()) for kind in ("short jobs", "long jobs")
    },
    "At 110 % DeepRM does not conserve": {
        "": words(pool("shallow", withheld={"shallow": 0.234}), pool("shallow", withheld={"shallow": 0.30}), pool(""))
    },
    "DeepRM withholds almost only": {
        f"long jobs' share of withheld {what}": words(
            *(by_length("shallow", shallow=lengths) for lengths in (FAIR, ALL_WAIT, UNFAIR))
        )
        for what in ("jobs", "steps of waiting")
    },
    "Short jobs have a far lower": {
        "": words(
            by_length("shallow", tetris=UNFAIR, shallow=FAIR),
            by_length("shallow", tetris=FAIR, shallow=UNFAIR),
            by_length("shallow"),
        )
    },
    "Long jobs have a higher": {
        "": words(
            by_length("shallow", tetris=UNFAIR, shallow=FAIR),
            by_length("shallow", tetris=FAIR, shallow=UNFAIR),
            by_length("shallow"),
        )
    },
}

FOUR = ("FCFS", "Random", "SJF", "Tetris")
PPO, SHORT_TASKS, LONG_TASKS = SLOWDOWN["ppo"], *TASKS["ppo"]


def without(algorithm: str) -> Made:
    """Evidence without agents that learn by an algorithm."""
    return machines(agents={name: row for name, row in ALL.items() if name != algorithm})


def slower(**slowdown: float) -> Made:
    """Evidence of many machines with other slowdowns."""
    return machines(slowdown=slowdown)


def each(word: str, of: Callable[[str], tuple[Made, Made]]) -> dict[str, dict[str, Made]]:
    """Cases for each heuristic: refuted and undecided; unchanged evidence supports the part."""
    return {f"{word} {name}": words(machines(), *of(RULES[name])) for name in FOUR}


def short_run(algorithm: str) -> Made:
    """Evidence of a run of 100 updates."""
    return machines(falls={algorithm: (50, 100)})


def races(one: str, other: str, text: str) -> dict[str, dict[str, Made]]:
    """Cases of one algorithm converging before another: refuted if they swap, undecided if both still learn."""
    late, soon = machines(falls={one: (7000, 10000), other: (20, 100)}), machines()
    still = machines(falls={one: (100, 100), other: (100, 100)}, agents={**ALL, one: learner(one), other: ALL[other]})
    return {f"{text}, by {unit}": words(soon, late, still) for unit in ("updates", "episodes")}


MACHINE_FIGURES = {
    "FCFS has the highest": {
        "Random below FCFS": words(machines(), slower(fcfs=1.57), slower(fcfs=1.58)),
        "SJF below Random": words(machines(), slower(sjf=1.59), slower(sjf=1.58)),
        "Tetris below Random": words(machines(), slower(tetris=1.59), slower(tetris=1.58)),
    },
    "PPO's mean slowdown is at least": each(
        "below", lambda name: (slower(**{name: 1.45}), slower(**{name: PPO / 0.925}))
    ),
    "PPO's mean slowdown is at most": each(
        "below", lambda name: (slower(**{name: 1.9}), slower(**{name: PPO / 0.865}))
    ),
    "PPO and A3C are nearly equal": {"": words(machines(), slower(a3c=1.6), without("a3c"))},
    "PPO has the lowest mean completion time": each(
        "below",
        lambda name: (machines(completion={name: 99.0}), machines(completion={name: COMPLETION["ppo"]})),
    ),
    "PPO's mean completion time is 0.2 %": {"": words(machines(), machines(completion={"sjf": 100.0}), without("ppo"))},
    "Short tasks are faster": each(
        "than under",
        lambda name: (machines(tasks={name: (14.0, 110.0)}), machines(tasks={name: (SHORT_TASKS, 110.0)})),
    ),
    "Long tasks are slower": each(
        "than under", lambda name: (machines(tasks={name: (20.0, 140.0)}), machines(tasks={name: (20.0, LONG_TASKS)}))
    ),
    "The makespan is nearly equal": each("PPO and", lambda name: (machines(makespan={name: 1100.0}), without("ppo"))),
    "PPO converges after about": {
        "after about 1,000 iterations": words(machines(), machines(falls={"ppo": (200, 2000)}), short_run("ppo"))
    },
    "A3C converges much later": {
        **races("ppo", "a3c", "PPO sooner"),
        "the same level": words(machines(), slower(a3c=1.6), without("a3c")),
    },
    "DAgger converges first": {
        **races("dagger", "ppo", "before PPO"),
        **races("dagger", "a3c", "before A3C"),
        "after about 500 iterations": words(machines(), machines(falls={"dagger": (100, 1000)}), short_run("dagger")),
    },
    "DAgger ends only as good": {"": words(machines(), slower(dagger=1.40), without("dagger"))},
}
ANYWHERE = {**LOAD_FIGURES, **OBJECTIVE_FIGURES, **LENGTH_FIGURES, **MACHINE_FIGURES}


def cases(claim: Claim) -> Mapping[str, Mapping[str, Made]]:
    """The cases of each part of a claim, by the part's text ("" for an only part); empty if there are none."""
    of_paper = {**ANYWHERE, **LEARNING_FIGURES.get(claim.paper, {})}
    found = [parts for start, parts in of_paper.items() if claim.text.startswith(start)]
    return found[0] if len(found) == 1 else {}


def lacking(claims: Iterable[Claim]) -> list[str]:
    """Parts of claims without a case, and cases without a part."""
    missing = []
    for claim in claims:
        has = cases(claim)
        texts = [""] if "" in has and len(claim.parts) == 1 else [part.text for part in claim.parts]
        missing += [f"{claim.text}: {text}" for text in texts if has.get(text, {}).keys() < {YES, NO, UNDECIDED}]
        missing += [f"{claim.text}: {text}: no such part" for text in has if text not in texts]
    return missing
