"""Teachers: untuned heuristics that training may imitate, by their name in params.yaml.

They are separate from `heuristics.rules`, so that a new heuristic there makes no training stale. One that is to be
imitated must also be added here.
"""

from pipeline.core.types import CompiledRule

EVEN_MIX = (1 / 3, 1 / 3)  # Tetris untuned: packing, fairness and shortness count equally
TEACHERS = {
    "fcfs": CompiledRule("fcfs"),
    "random": CompiledRule("random_placement"),
    "sjf": CompiledRule("sjf"),
    "tetris": CompiledRule("tetris_fair", knobs=EVEN_MIX),
    **{name: CompiledRule(name) for name in ("packer", "saf", "f1", "wfp3", "unicep")},
    **{name: CompiledRule(name) for name in ("least_allocated", "most_allocated", "balanced_allocation")},
    "sjf_most_allocated": CompiledRule("sjf_most_allocated"),
}
