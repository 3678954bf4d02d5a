"""Heuristics of many machines as policies; their scores and sources are in `env.simulator.rules`.

saf         smallest area first: duration times share of all machines' resources, summed over resources
saf_aged    smallest area / (1 + waited / age) first, so that large jobs do not starve
f1          least log10(duration) * processors + 870 * log10(arrival)
wfp3        greatest (waited / duration)^3 * processors
unicep      greatest waited / (log2(processors) * duration)
packer      the job and machine best aligned: mean over resources of demanded times free share of the machine
tetris      a mix of alignment, wait / longest wait and, with the rest of the weight, shortest duration / duration
*_allocated jobs in order of arrival (or shortest first), each on the machine that it leaves with the largest share
            free (least), the largest share taken (most), or the most even shares taken (balanced)
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from pipeline.core.config import MachinesAgent, MachinesEvolution, MachinesScenario, Params
from pipeline.core.config.machines.learning import Dagger, MachinesKnobs
from pipeline.core.config.problems import check_plan_names
from pipeline.core.config.records import check_known
from pipeline.core.types import CompiledRule, FloatArray, IntArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.problems.machines.env.teachers import EVEN_MIX, TEACHERS
from pipeline.simulation.results import Play, mean_cost
from pipeline.simulation.rollout import Heuristic, Score, fcfs, heuristic, sjf

AGE = 14_400.0  # of SAF with ageing, in time units: four hours of a log
TETRIS = "tetris"
MIX = ("tetris_packing", "tetris_fairness")  # its knobs; the rest is the weight of shortness


def score(rule: CompiledRule, view: Observation) -> FloatArray:
    """Return the scores of a compiled rule: of jobs [B, M], or of jobs on machines [B, M, K].

    Rules that choose the job first score only the machines for that job; all other jobs have -inf.
    """
    from pipeline.problems.machines.env.simulator import rules as kernels  # numba: 0.5 s

    number = kernels.RULES[rule.rule]
    scores: FloatArray = np.zeros(view.legal.shape)
    total = view.capacity.sum(axis=1).astype(float)
    shortest = np.where(view.nodes > 0, view.duration, np.inf).min(axis=1)
    longest_wait = np.maximum(view.waited.max(axis=1), kernels.TINY)
    kernels.score_view(view, number, rule.knobs or kernels.NO_KNOBS, total, shortest, longest_wait, scores)
    if number < kernels.LEAST:
        return scores[:, :, 0] if number < kernels.PACKER else scores
    preferred = (sjf if number == kernels.SJF_MOST else fcfs)(view)
    best = np.where(view.legal.any(axis=2), preferred, -np.inf).argmax(axis=1)
    chosen = np.arange(scores.shape[1]) == best[:, None]
    return np.where(chosen[:, :, None], scores, -np.inf)


def compiled(rule: CompiledRule, order: Score | None = None) -> Heuristic:
    """Return the policy of a compiled rule; `order` ranks all jobs where the rule scores only one."""
    return heuristic(partial(score, rule), rule, order)


def with_mix(packing: float, fairness: float) -> Heuristic:
    """Return Tetris with weights of packing and fairness, together at most 1; the rest is that of short run times."""
    return compiled(CompiledRule("tetris_fair", knobs=(packing, fairness)))


def with_age(age: float) -> Heuristic:
    """Return SAF with ageing; a job that has waited for `age` counts as half as large."""
    return compiled(CompiledRule("saf_aged", knobs=(age, 0.0)))


def random_placement(view: Observation, draws: FloatArray) -> IntArray:
    """Draw uniformly from the legal placements; choose void only if there are none."""
    count, slots, machines = view.legal.shape
    legal = view.legal.reshape(count, slots * machines)
    place = (draws * legal.sum(axis=1)).astype(np.int64)
    drawn = (legal.cumsum(axis=1) > place[:, None]).argmax(axis=1)
    return np.asarray(np.where(legal.any(axis=1), drawn, slots * machines))


# Untuned heuristics of many machines, by their name in params.yaml.
HEURISTICS: dict[str, Policy] = {
    "fcfs": heuristic(fcfs, TEACHERS["fcfs"]),
    "random": Heuristic(random_placement, TEACHERS["random"]),
    "sjf": heuristic(sjf, TEACHERS["sjf"]),
    TETRIS: with_mix(*EVEN_MIX),
    "packer": compiled(TEACHERS["packer"]),
    "saf": compiled(TEACHERS["saf"]),
    "saf_aged": with_age(AGE),
    **{name: compiled(TEACHERS[name]) for name in ("f1", "wfp3", "unicep")},
    **{name: compiled(TEACHERS[name], fcfs) for name in ("least_allocated", "most_allocated", "balanced_allocation")},
    "sjf_most_allocated": compiled(TEACHERS["sjf_most_allocated"], sjf),
}

# As in RLScheduler's code, to reproduce its published results: the start of a waiting job counts as time -1.
PEERS: dict[str, Policy] = {name: compiled(CompiledRule(name)) for name in ("wfp_peer", "uni_peer")}


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics, with Tetris as tuned."""
    return HEURISTICS | {TETRIS: with_mix(*(knobs[name] for name in MIX))}


def tuned_mix(play: Play, knobs: MachinesKnobs) -> dict[str, float]:
    """Return the mix of Tetris with the least mean bounded slowdown on validation jobsets."""
    tried = {f"{TETRIS} {mix!r}": mix for mix in knobs.mixes}
    results = play({name: with_mix(*mix) for name, mix in tried.items()})
    best = min(tried, key=lambda name: mean_cost(results[name], "bounded_slowdown"))
    return dict(zip(MIX, tried[best], strict=True))


def check_names(params: Params) -> None:
    """Check that agents and plans of many machines have names of their own, and that teachers and bases exist.

    Raises:
        UserError: an agent or plan has the name of another policy, or an unknown teacher or base.
    """
    for name, agent in params.agents.items():
        if agent.scenario not in params.scenarios_of(MachinesScenario):
            continue
        if name in HEURISTICS:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
        if isinstance(agent.finetune, Dagger):
            check_known("params.yaml", f"agents.{name}.finetune.teacher", agent.finetune.teacher, TEACHERS)
        if isinstance(agent.finetune, MachinesEvolution):
            check_known("params.yaml", f"agents.{name}.finetune.base", agent.finetune.base, TEACHERS)
    agents = params.agents_with(MachinesAgent)
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("", "_pretrained"))}
    check_plan_names(params, "machines", {**dict.fromkeys(HEURISTICS), **agents}, taken)
