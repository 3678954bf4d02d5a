"""Teachers: heuristics that training may imitate.

They stand apart from `rules`: a new heuristic there is played and compared, and makes no training stale. One that is
to be imitated is entered here, too.
"""

from pipeline.core import CompiledRule

EVEN_MIX = (1 / 3, 1 / 3)  # Tetris untuned: packing, fairness and shortness count alike

# Teachers as they are without tuning, by their params.yaml word.
TEACHERS = {
    "fcfs": CompiledRule("fcfs"),
    "random": CompiledRule("random_placement"),
    "sjf": CompiledRule("sjf"),
    "tetris": CompiledRule("tetris_fair", knobs=EVEN_MIX),
    "packer": CompiledRule("packer"),
    "saf": CompiledRule("saf"),
    "f1": CompiledRule("f1"),
    "wfp3": CompiledRule("wfp3"),
    "unicep": CompiledRule("unicep"),
    "least_allocated": CompiledRule("least_allocated"),
    "most_allocated": CompiledRule("most_allocated"),
    "balanced_allocation": CompiledRule("balanced_allocation"),
    "sjf_most_allocated": CompiledRule("sjf_most_allocated"),
}
