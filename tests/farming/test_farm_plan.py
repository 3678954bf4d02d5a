"""The plan of a farm: which stage is next, what a failure holds back, and the time left."""

from pipeline.farming.dvc_stages import Graph
from pipeline.farming.farm import Plan, with_dependents

# draw -> short -> join -> last, draw -> long -> join, draw -> aside
NEEDS: Graph = {
    "draw": frozenset(),
    "short": frozenset({"draw"}),
    "long": frozenset({"draw"}),
    "join": frozenset({"short", "long"}),
    "aside": frozenset({"draw"}),
    "last": frozenset({"join"}),
}
SECONDS = {"draw": 2.0, "short": 3.0, "long": 10.0, "join": 1.0, "aside": 4.0, "last": 1.0}


def plan(*done: str, seconds: dict[str, float] | None = None) -> Plan:
    made = Plan(NEEDS, NEEDS, SECONDS if seconds is None else seconds, "last")
    for stage in done:
        begun(made, stage, 0.0)
        made.end(stage, well=True)
    return made


def begun(made: Plan, stage: str, now_s: float) -> None:
    """Have a stage run, whichever comes first."""
    made.waiting.remove(stage)
    made.running[stage] = now_s


def test_what_is_behind_a_stale_stage_is_taken_with_it_and_nothing_else() -> None:
    assert with_dependents(NEEDS, ["short"]) == {"short", "join", "last"}
    assert with_dependents(NEEDS, ["no stage of this graph"]) == set()


def test_a_stage_waits_for_those_of_the_plan_that_it_needs_and_for_no_others() -> None:
    assert plan().begin(0.0) == "draw"
    assert Plan(NEEDS, ["join", "last"], SECONDS).begin(0.0) == "join"


def test_the_longest_way_goes_first_and_without_knowledge_the_longer_chain() -> None:
    assert plan("draw").begin(0.0) == "long"  # 12 s to the end, against 5 and 4
    assert plan("draw", seconds={}).begin(0.0) in ("short", "long")  # 3 stages to the end, against 1


def test_of_stages_that_never_ran_a_long_kind_goes_first_and_what_is_known_counts_more() -> None:
    needs: Graph = {
        "evaluate@a": frozenset(),
        "hindsight@b": frozenset(),
        "join": frozenset({"evaluate@a", "hindsight@b"}),
    }
    assert Plan(needs, needs, {}).begin(0.0) == "hindsight@b"
    assert Plan(needs, needs, {"evaluate@a": 9.0, "hindsight@b": 1.0}).begin(0.0) == "evaluate@a"


def test_the_last_stage_waits_for_all_that_can_still_run() -> None:
    made = plan("draw", "short", "long", "join")
    begun(made, "aside", 0.0)
    assert made.begin(0.0) is None
    made.end("aside", well=False)
    assert made.begin(0.0) == "last"


def test_a_failure_holds_back_what_needs_it_alone() -> None:
    made = plan("draw")
    begun(made, "long", 0.0)
    made.end("long", well=False)
    assert made.blocked == {"join", "last"}
    assert {made.begin(0.0), made.begin(0.0)} == {"aside", "short"}
    for stage in ("aside", "short"):
        made.end(stage, well=True)
    assert made.begin(0.0) is None
    assert made.left_s(2, 0.0) == (0.0, 0)


def test_the_time_left_is_that_of_the_longest_chain_or_of_all_work_over_the_workers() -> None:
    assert plan().left_s(1, 0.0) == (21.0, 0)  # all of them
    assert plan().left_s(2, 0.0) == (14.0, 0)  # draw 2, long 10, join 1, last 1
    made = plan("draw")
    begun(made, "long", 100.0)
    assert made.left_s(2, 106.0) == (6.5, 0)  # half of long 4, short 3, aside 4, join 1 and last 1
    assert made.left_s(3, 106.0) == (6.0, 0)  # long 4, join 1, last 1
    assert made.left_s(3, 115.0) == (5.0, 0)  # long is late: short 3, join 1, last 1


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    made = plan("draw", seconds={"long": 10.0})
    assert made.left_s(2, 0.0) == (10.0, 4)


def test_of_equals_the_first_is_begun_first() -> None:
    names = ["beta", "alpha", "gamma"]
    made = Plan({name: frozenset() for name in names}, names, {})
    found = []
    while stage := made.begin(0.0):
        found.append(stage)
    assert found == names
