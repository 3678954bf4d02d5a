"""Made-up evidence: twelve jobsets per load, with the same variation under every policy."""

from collections.abc import Mapping, Sequence

import pandas as pd
from builders import params

from pipeline.core.config import Agent
from pipeline.core.schemas.tables import CURVE
from pipeline.papers.evidence import Evidence
from pipeline.papers.figures import gathered
from pipeline.papers.roles import Roles, Setting
from pipeline.problems.pool.env.tables import JOB_RESULTS, JOBSET_RESULTS

UPS = 3 * (-0.1, 0.1, 0.0, 0.0)  # deviations of the jobsets from their load's mean
HEURISTICS = {"sjf": 2.0, "packer": 4.0, "tetris": 1.9, "random": 5.0, "hold": 1.8}
LENGTHS = (1, 3, 10, 15)
DEFAULT = params()
OURS = DEFAULT.model_copy(
    update={"evaluation": DEFAULT.evaluation.model_copy(update={"resamples": 200, "confidence": 0.9})}
)

Means = Mapping[str, Mapping[int, float]]  # policy -> load -> mean over jobsets
ByLength = Mapping[int, tuple[float, int]]  # duration -> slowdown, steps withheld


def agent(
    network: str = "mlp",
    objective: str = "slowdown",
    cloned: bool = False,
    updates: int = 400,
    loads: Sequence[int] = (110, 130),
    **more: int,
) -> Agent:
    """An agent of the scenario "made"; `more` is for its finetuning."""
    some = DEFAULT.agents["deeprm2" if network == "cnn" else "deeprm"]
    start = DEFAULT.agents["deeprm2" if cloned else "deeprm"].pretrain
    part = some.finetune.model_copy(update={"recipe": "ours", "updates": updates, "loads": tuple(loads), **more})
    changes = {"scenario": "made", "objective": objective, "pretrain": start, "finetune": part}
    return some.model_copy(update=changes)


def curve(**metrics: Mapping[int, float]) -> pd.DataFrame:
    """A learning curve: metric -> update -> value."""
    rows = [(update, name, float(value)) for name, line in metrics.items() for update, value in line.items()]
    return pd.DataFrame(rows, columns=list(CURVE.columns))


def rising(updates: int = 20, first: float = -100.0, last: float = -40.0) -> pd.DataFrame:
    """A curve of successful training: returns rise, their gap closes, slowdown falls from 6 to 2."""
    share = {k: (k - 1) / max(updates - 1, 1) for k in range(1, updates + 1)}
    mean = {k: first + (last - first) * s for k, s in share.items()}
    return curve(
        mean_return=mean,
        best_return={k: value + 20 - 15 * share[k] for k, value in mean.items()},
        slowdown={k: 6 - 4 * s for k, s in share.items()},
        validation={0: 6.0, updates: 1.5},
    )


def falling(until: int, updates: int) -> dict[int, float]:
    """A metric that falls from 6 to 2 until an update, and stays constant until the last."""
    noise = (-0.001, 0.001)
    return {k: 2 + 4 * max(1 - (k - 1) / until, 0) + noise[k % 2] for k in range(1, updates + 1)}


def jobset_table(slowdown: Means, completion: Means, withheld: Mapping[str, float]) -> pd.DataFrame:
    """JobsetResults with these means."""
    rows = []
    for policy, line in slowdown.items():
        for load, mean in line.items():
            for jobset, up in enumerate(UPS):
                done = completion.get(policy, {}).get(load, 3 * mean) + up
                share = max(withheld.get(policy, 0.0) + up / 100, 0.0) if policy in withheld else 0.0
                worst = [mean + up] * 4
                rows.append((policy, load, jobset, 4, *worst, 7, done, 20, 0.5, share, 0))
    return pd.DataFrame(rows, columns=list(JOBSET_RESULTS.columns))


def job_table(policies: Sequence[str], loads: Sequence[int], by_length: Mapping[str, ByLength]) -> pd.DataFrame:
    """JobResults: in each jobset one job of each length."""
    rows = []
    for policy in policies:
        fared = by_length.get(policy, dict.fromkeys(LENGTHS, (2.0, 0)))
        for load in loads:
            for jobset, up in enumerate(UPS):
                for job, (steps, (slow, held)) in enumerate(fared.items()):
                    rows.append((policy, load, jobset, job, steps, 1, 20, held, slow + up, False))
    return pd.DataFrame(rows, columns=list(JOB_RESULTS.columns))


def evidence(
    agents: Mapping[str, Agent] | None = None,
    loads: Sequence[int] = (70, 90, 110, 130),
    setting: Setting = "online",
    slowdown: Mapping[str, Mapping[int, float] | float] | None = None,
    completion: Means | None = None,
    withheld: Mapping[str, float] | None = None,
    by_length: Mapping[str, ByLength] | None = None,
    curves: Mapping[str, pd.DataFrame] | None = None,
) -> Evidence:
    """The evidence of a scenario; by default, a policy's slowdown grows with load."""
    rows = {"shallow": agent(), "deep": agent("cnn", cloned=True)} if agents is None else dict(agents)
    given = {**HEURISTICS, **dict.fromkeys(rows, 1.5), **{f"{name}_pretrained": 5.5 for name in rows}}
    given |= slowdown or {}
    means = {
        policy: {load: of + load / 100 for load in loads} if isinstance(of, float) else of
        for policy, of in given.items()
    }
    jobs = job_table(list(means), loads, by_length or {})
    levels = {name: {k: v + 1.2 for k, v in HEURISTICS.items()} for name in rows}
    found = {name: (curves or {}).get(name, rising()) for name in rows}
    table = jobset_table(means, completion or {}, withheld or {})
    return gathered(OURS, Roles("made", setting, rows), table, jobs, found, levels, dict.fromkeys(loads, "hold"))
