"""Teachers on many machines are their heuristics, untuned."""

from pipeline.problems.machines.env.teachers import TEACHERS
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.simulation.rollout import compiled_rule_of


def test_a_teacher_is_the_heuristic_of_its_name() -> None:
    assert len(TEACHERS) > 10
    assert {name: compiled_rule_of(HEURISTICS[name]) for name in TEACHERS} == TEACHERS
