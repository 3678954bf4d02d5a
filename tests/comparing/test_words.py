"""Tables and sentences a reader can check against the numbers."""

import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.hindsight import hindsight_markdown
from pipeline.comparing.words import closing, document, headline, headlines, objectives, stream_tables, table
from pipeline.core.schemas import COMPARISON, DELAY, HINDSIGHT_SUMMARY, OBJECTIVES, STREAM_SUMMARY, empty

COLUMNS = ["load", "policy", "mean", "mean_against", "difference", "difference_low", "difference_high", "unfinished"]
ROWS = [
    ("010", "net", 1.50, 1.50, 0.004, -0.010, 0.021, 0),
    ("130", "net", 3.65, 5.00, -0.271, -0.292, -0.250, 0),
    ("all", "net", 2.575, 3.25, -0.208, -0.230, -0.190, 0),
    ("010", "lpt", 3.00, 1.50, 1.0, 0.9, 1.1, 0),
    ("130", "lpt", 9.00, 5.00, 0.8, 0.7, 0.9, 3),
    ("all", "lpt", 6.00, 3.25, 0.846, 0.8, 0.9, 3),
]


def comparison(
    rows: list[tuple[str, str, float, float, float, float, float, int]], schema: pa.DataFrameSchema = COMPARISON
) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(scenario="online", against="sjf", low=1.0, high=9.0)
    frame["n"] = frame["load"].map({"010": 200, "130": 200, "all": 400})
    return schema.validate(frame[list(schema.columns)])


def test_the_table_ranks_policies_and_shows_the_reference_among_them() -> None:
    lines = table(comparison(ROWS)).splitlines()
    assert lines[0].startswith("**online**: mean slowdown (difference from sjf")
    assert lines[2:] == [
        "| policy | 10 | 130 | all |",
        "| --- | ---: | ---: | ---: |",
        "| net | 1.50 (+0.4 ±1.6 %) | **3.65** (-27.1 ±2.1 %) | **2.58** (-20.8 ±2.0 %) |",
        "| sjf | 1.50 | 5.00 | 3.25 |",
        "| lpt | 3.00 (+100.0 ±10.0 %) | 9.00† (+80.0 ±10.0 %) | 6.00† (+84.6 ±5.0 %) |",
    ]


def test_a_table_says_that_the_best_heuristic_is_one_for_all_loads() -> None:
    best = comparison(ROWS).assign(against="best_heuristic")
    said = "It is one heuristic for all loads, as no policy knows the load."
    both = pd.concat([best, comparison(ROWS)])
    assert [said in part for part in table(both, single=["online"]).split("\n\n")[::2]] == [True, False]
    assert said not in table(both)
    assert said not in table(best[best["load"].isin(["130", "all"])], single=["online"])  # of a log there is one load


def test_tables_of_scenarios_are_in_the_order_of_the_comparison() -> None:
    both = pd.concat([comparison(ROWS), comparison(ROWS).assign(scenario="machines")])
    titles = [part.split(":")[0] for part in table(both).split("\n\n")[::2]]
    assert titles == ["**online**", "**machines**"]


def test_a_headline_tells_all_loads_then_the_best_and_the_worst() -> None:
    assert headline(comparison(ROWS), {"net"}, 0.95) == [
        "net (online): mean slowdown 20.8 % below sjf over all loads (95 % interval 19.0 to 23.0, n = 400 jobsets)",
        "net (online): mean slowdown 27.1 % below sjf at load 130 (95 % interval 25.0 to 29.2, n = 200 jobsets)",
        "net (online): mean slowdown 0.4 % above sjf at load 10 "
        "(95 % interval 1.0 below to 2.1 above, n = 200 jobsets)",
    ]


def test_a_headline_of_one_load_is_one_sentence_and_tells_unfinished_jobs() -> None:
    one_load = [ROWS[4], ROWS[5]]
    assert headline(comparison(one_load), {"lpt"}, 0.9) == [
        "lpt (online): mean slowdown 80.0 % above sjf at load 130 "
        "(90 % interval 70.0 to 90.0, n = 200 jobsets; 3 jobs unfinished, so at least this slow)",
    ]


def test_a_table_of_waiting_times_says_so() -> None:
    waits = [("130", "net", 0.50, 0.80, -0.375, -0.5, -0.25, 2), ("all", "net", 0.50, 0.80, -0.375, -0.5, -0.25, 2)]
    frame = comparison(waits, DELAY)
    lines = table(frame, "waiting time").splitlines()
    assert lines[0] == (
        "**online**: mean waiting time (difference from sjf, ± half its interval). n = 200. Bold: the whole interval "
        "is below. †: some jobs unfinished, so at least this long."
    )
    assert lines[2:] == [
        "| policy | 130 |",
        "| --- | ---: |",
        "| net | **0.50**† (-37.5 ±12.5 %) |",
        "| sjf | 0.80 |",
    ]


def test_a_table_tells_n_and_of_few_jobsets_their_range() -> None:
    assert "interval). n = 200 at each load, 400 over all. Bold" in table(comparison(ROWS))
    few = comparison(ROWS).assign(n=8)  # windows, the same at both loads
    lines = table(few).splitlines()
    assert (
        "(difference from sjf, its range over so few). n = 8 at each load, 8 over all. Bold: the whole range"
        in lines[0]
    )
    assert "| net | 1.50 (+0.4 % (-1.0 to +2.1)) | **3.65** (-27.1 % (-29.2 to -25.0)) |" in lines[4]
    assert headline(few, {"net"}, 0.95)[0].endswith("over all loads (range 19.0 to 23.0, n = 8 jobsets)")


def of_agents() -> pd.DataFrame:
    """One agent that was trained for waiting time, against two references."""
    rows = pd.concat([comparison(ROWS[:3]), comparison(ROWS[:3]).assign(against="drf", difference=0.05)])
    rows.insert(0, "objective", "delay")
    return OBJECTIVES.validate(rows)


def test_agents_stand_first_by_what_each_was_trained_for() -> None:
    lines = objectives(of_agents()).splitlines()
    assert lines[2:] == [
        "| agent | scenario | trained for | mean | n | difference |",
        "| --- | --- | --- | ---: | ---: | --- |",
        "| net | online | delay | 2.58 | 400 | sjf -20.8 % (-23.0 to -19.0); drf +5.0 % (-23.0 to -19.0) |",
    ]
    text = document(comparison(ROWS), empty(DELAY), [objectives(of_agents())], ["last"])
    assert text.index("trained for") < text.index("**online**") < text.index("last")
    assert objectives(empty(OBJECTIVES)) == ""


def test_a_headline_begins_with_what_an_agent_was_trained_for() -> None:
    said = headlines(of_agents(), comparison(ROWS), 0.95)
    assert [line.split(" below")[0].split(" above")[0] for line in said[::3]] == [
        "net (online): mean delay 20.8 %",
        "net (online): mean delay 5.0 %",
        "net (online): mean slowdown 20.8 %",
    ]
    same = of_agents().assign(objective="slowdown")
    assert len(headlines(same, comparison(ROWS), 0.95)) == 6


def test_of_no_comparison_there_is_no_table() -> None:
    assert table(empty(DELAY), "waiting time") == ""


# Streams


def streams() -> pd.DataFrame:
    """Two loads of one stream, of two policies each."""
    rows = [(70, "sjf", 3.0, 0.0, 0), (70, "net", 2.5, 0.0, 0), (110, "sjf", 30.0, 4.0, 3), (110, "net", 40.0, 2.0, 0)]
    frame = pd.DataFrame(rows, columns=["load", "policy", "slowdown", "growth", "never_started"])
    frame = frame.assign(overload=frame["load"] > 100, finished=48.5, finished_low=48.0, finished_high=49.0)
    frame = frame.assign(p99_slowdown_low=11.0, p99_slowdown_high=14.0, mean_longest_wait=300.0)
    frame = frame.assign(mean_longest_wait_low=280.0, mean_longest_wait_high=310.0)
    frame = frame.assign(scenario="endless", n=24, jobs=900, longest_wait=412, utilisation=0.7012, p99_slowdown=12.34)
    frame = frame.assign(slowdown_low=frame["slowdown"] - 0.5, slowdown_high=frame["slowdown"] + 1)
    frame = frame.assign(growth_low=frame["growth"] - 1, growth_high=frame["growth"] + 0.25)
    rest = {name: 9.0 for name in STREAM_SUMMARY.columns if name not in frame}
    return STREAM_SUMMARY.validate(frame.assign(**rest)[list(STREAM_SUMMARY.columns)])


def test_a_stream_has_a_table_a_load_with_slowdown_tail_use_and_growth() -> None:
    first, second = stream_tables(streams()).split("\n\n**endless**, load 110: ")
    assert first.startswith("**endless**, load 70: jobs that arrive in the measured steps of 24 streams.")
    assert first.splitlines()[2:] == [
        "| policy | Mean slowdown | 99th percentile | Longest wait | Never started | Finished | Utilisation | Growth |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| net | 2.50 (2.00 to 3.50) | 12.3 (11.0 to 14.0) | 300 (280 to 310), 412 | 0 | 48.50 (48.00 to 49.00) | "
        "70.1 % | +0.00 (-1.00 to +0.25) |",
        "| sjf | 3.00 (2.50 to 4.00) | 12.3 (11.0 to 14.0) | 300 (280 to 310), 412 | 0 | 48.50 (48.00 to 49.00) | "
        "70.1 % | +0.00 (-1.00 to +0.25) |",
    ]
    assert "An overload" not in first
    assert "An overload: judge by what is finished and by growth." in second
    assert [row.split(" |")[:2] + row.split(" |")[4:5] for row in second.splitlines()[4:]] == [
        ["| net", " 40.00 (39.50 to 41.00)", " 0"],  # in order of growth
        ["| sjf", " 30.00† (29.50 to 31.00)", " 3"],
    ]


# Hindsight


def foreseen(net: tuple[float, float, float], plain: tuple[float, float, float]) -> pd.DataFrame:
    """What two agents and SJF close; elsewhere than over all loads nothing."""
    over = {"net": net, "plain": plain, "sjf": (-0.5, -0.6, -0.4)}
    rows = [("all", policy, *closes) for policy, closes in over.items()]
    rows += [("130", policy, 0.0, 0.0, 0.0) for policy in over]
    frame = pd.DataFrame(rows, columns=["load", "policy", "closes", "closes_low", "closes_high"])
    frame = frame.assign(scenario="online", n=frame["load"].map({"130": 15, "all": 30}), optimal=0.5)
    frame = frame.assign(slowdown=3.0, best_heuristic=4.0, hindsight=2.0, bound=1.0)
    return HINDSIGHT_SUMMARY.validate(frame[list(HINDSIGHT_SUMMARY.columns)])


NAN = float("nan")
TO_HINDSIGHT = "from the best heuristic to hindsight (the best schedules found with all jobs known; 30 jobsets)."


def test_every_agent_tells_what_it_closes_of_the_distance_to_hindsight() -> None:
    assert closing(foreseen((0.421, 0.38, 0.466), (-0.07, -0.2, 0.06)), {"net", "plain"}, 0.95) == [
        "Scenario online: net closes 42 % (95 % interval 38 to 47) and plain closes -7 % (-20 to 6) of the distance "
        + TO_HINDSIGHT
    ]


def test_where_there_is_no_clear_distance_the_sentence_says_so_and_without_agents_there_is_none() -> None:
    nothing = foreseen((NAN, NAN, NAN), (NAN, NAN, NAN)).query("policy != 'sjf'")
    known = TO_HINDSIGHT.removeprefix("from the best heuristic to hindsight ")
    unclear = f"Scenario online: the best heuristic and hindsight do not differ clearly {known}"
    assert closing(nothing, {"net", "plain"}, 0.95) == [unclear]
    assert closing(foreseen((0.1, 0.1, 0.1), (0.1, 0.1, 0.1)), {}, 0.95) == []
    assert closing(empty(HINDSIGHT_SUMMARY), {"net"}, 0.95) == []


def test_the_document_has_all_that_there_is_and_no_gaps() -> None:
    solved = foreseen((0.5, 0.4, 0.6), (0.2, 0.1, 0.3))
    said = closing(solved, {"net"}, 0.95)
    sections = [stream_tables(streams()), *said, hindsight_markdown(solved)]
    whole = document(comparison(ROWS), empty(DELAY), sections=sections)
    starts = [
        "**online**: mean slowdown",
        "**endless**, load 70",
        "**endless**, load 110",
        "Scenario online: net closes",
    ]
    places = [whole.index(start) for start in [*starts, "**online**: percent of the distance"]]
    assert places == sorted(places)
    assert "| net | 50 % (40 to 60) |" in whole
    nothing = [stream_tables(empty(STREAM_SUMMARY)), hindsight_markdown(empty(HINDSIGHT_SUMMARY))]
    bare = document(comparison(ROWS), empty(DELAY), sections=nothing)
    assert bare == table(comparison(ROWS)) + "\n"
