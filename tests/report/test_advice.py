"""The page of advice, and its sentence."""

import re
from typing import Any

import pytest
from readable import luminance

from pipeline.report.advice import NO_LIMITS, duration, page, sentence

POINTS = r"\.(safe|vetoed|today|best) \{ (.*?) \}"  # their styles


def change(value: float, today: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "today": today, "change": value / today - 1, "low": low, "high": high}


CHANGES = {
    "gain": change(0.6, 1.0, -0.5, -0.3),
    "wait": change(3_600, 7_200, -0.6, -0.4),
    "p99_wait": change(28_800, 36_000, -0.3, 0.1),
    "longest_wait": change(90_000, 100_000, -0.2, 0.05),
    "slowdown": change(18.0, 20.0, -0.2, 0.01),
}
SAME = {name: change(one["today"], one["today"], 0.0, 0.0) for name, one in CHANGES.items()}
LONGER = {**CHANGES, "longest_wait": change(200_000, 100_000, 0.9, 1.1)}
FOUND: dict[str, Any] = {
    "scenario": "mine",
    "verdict": "use",
    "policy": "limit_8h",
    "candidate": "limit_8h",
    "runner_up": "area_4h",
    "against": "fcfs",
    **CHANGES,
    "vetoes": [],
    "n": 12,
    "replays": 7,
    "more_days": None,
    "period": "the log's last 960 jobs, 12 blocks of three days",
    "others": {"area_4h": {**CHANGES, "wait": change(3_000, 7_200, -0.65, -0.5)}},
    "orders": [
        {"name": "fcfs", "for_slurm": False, "vetoes": [], **SAME},
        {"name": "sjf", "for_slurm": False, "vetoes": ["the longest wait grows by 100 %"], **LONGER},
        {"name": "limit_8h", "for_slurm": True, "vetoes": [], **CHANGES},
        {"name": "area_4h", "for_slurm": True, "vetoes": [], **CHANGES},
    ],
    "excluded": {"sjf": ["the longest wait grows by 100 %"]},
    "classes": [
        {"what": "jobs of <1 %", "jobs": 40, "today": [120.0, 7_200.0, 400_000.0], "value": [30.0, 3_600.0, 1.0]}
    ],
    "users": {"gain": 31, "lose": 4, "all": 57},
    "own": {"wait": 10_800.0, "p99_wait": None, "longest_wait": 800_000.0},
    "limits": True,
    "backfill": {"reservations": 7, "tested": 50, "window_h": 24.0},
    "in_vain": [
        {
            "user": 77,
            "jobs": 12,
            "limit_s": 86_400.0,
            "run_s": 60.0,
            "used": 0.04,
            "suggested_s": 240.0,
            "in_vain_h": 4_321.0,
        }
    ],
    "processors": 240.0,
    "log": ["2,400 jobs of <5> users"],
}
AGAINST = (
    "mean wait -50.0 % (-60.0 to -40.0), mean bounded slowdown -10.0 % (-20.0 to +1.0), 99th percentile of waits "
    "-20.0 %, longest wait -10.0 %, against fcfs, n = 12 blocks of three days"
)


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({}, f"use limit_8h: {AGAINST}"),
        ({"verdict": "equal"}, f"stay with fcfs: limit_8h is as good: {AGAINST}"),
        (
            {"verdict": "undecided", "more_days": 84},
            f"cannot tell, so stay with fcfs; with limit_8h, the best safe order on earlier days, {AGAINST}; about 84 "
            "more days of log would tell",
        ),
        (
            {"verdict": "undecided"},
            f"cannot tell, so stay with fcfs; with limit_8h, the best safe order on earlier days, {AGAINST}",
        ),
        (
            {"verdict": "vetoed", "vetoes": ["the longest wait grows by 12 %", "large jobs wait"]},
            "stay with fcfs: limit_8h would be faster, but the longest wait grows by 12 % and large jobs wait: "
            f"{AGAINST}; area_4h is not vetoed: mean wait -58.3 % (-65.0 to -50.0)",
        ),
        (
            {"verdict": "vetoed", "vetoes": ["large jobs wait"], "runner_up": ""},
            f"stay with fcfs: limit_8h would be faster, but large jobs wait: {AGAINST}",
        ),
        (
            {"verdict": "stay", "candidate": "fcfs"},
            "stay with fcfs: on the validation period no safe order was better, or jobs hardly waited",
        ),
    ],
)
def test_the_sentence_says_what_to_do_by_how_much_and_how_sure(update: dict[str, Any], said: str) -> None:
    assert sentence({**FOUND, **update}) == said


def test_times_have_a_unit_for_people() -> None:
    assert [duration(s) for s in (0, 59, 60, 3_599, 3_600, 259_199, 259_200)] == [
        *("0 s", "59 s", "1.0 min", "60.0 min", "1.0 h", "72.0 h", "3.0 days")
    ]


def cells(text: str) -> list[list[str]]:
    """The cells of every row of the page's tables."""
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr><td>.*?</tr>", text)]


def test_the_page_holds_the_figures_of_the_candidate_and_of_the_runner_up() -> None:
    text = page([FOUND], 0.95)
    rows = cells(text)
    assert ["mean wait", "2.0 h", "1.0 h", "-50.0 %", "-60.0 to -40.0"] in [row[:5] for row in rows]
    assert ["mean wait", "2.0 h", "50.0 min", "-58.3 %", "-65.0 to -50.0"] in [row[:5] for row in rows]
    assert ["mean bounded slowdown", "20.0", "18.0", "-10.0 %", "-20.0 to +1.0"] in [row[:5] for row in rows]
    assert ["longest wait", "27.8 h", "25.0 h", "-10.0 %", "-20.0 to +5.0"] in [row[:5] for row in rows]
    assert "The runner-up, of another family: area_4h against fcfs" in text
    assert "95 % interval" in text
    assert "7 replays of " in text
    assert (
        "Backfill: the first 50 waiting jobs are tested; reservations in each partition: at most 7, up to 24 hours"
        in text
    )
    assert "Backfill" not in page([{key: value for key, value in FOUND.items() if key != "backfill"}], 0.95)
    assert f'<p class="use">use limit_8h: {AGAINST}</p>' in text
    assert '<p class="use stay">' in page([{**FOUND, "verdict": "equal"}], 0.95)
    assert "runner-up" not in page([{**FOUND, "runner_up": "", "others": {}}], 0.95)


def test_an_interval_is_a_bar_from_minus_to_plus_one_hundred_percent() -> None:
    """-60 to -40 % are 20 to 30 of 100 across, and -50 % is at 25; what is beyond is cut."""
    assert '<i style="left: 20.0%; width: 10.0%"></i><b style="left: 25.0%"></b>' in page([FOUND], 0.95)
    wide = {**FOUND, "wait": change(36_000, 7_200, -0.5, 9.0)}
    assert '<i style="left: 25.0%; width: 75.0%"></i><b style="left: 100%"></b>' in page([wide], 0.95)


def test_every_order_is_a_point_of_mean_wait_and_longest_wait() -> None:
    """Of 640 by 360 px with margins of 64: the least values are at 5 % of what is left, the largest at 85 %."""
    text = page([FOUND], 0.95)
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="5" class="(\w+)"><title>(.*?)</title>', text)
    wanted = [
        (64 + 512 * 0.85, 296 - 232 * (0.05 + 0.8 * 10 / 110), "today", "fcfs: mean 2.0 h, longest 27.8 h"),
        (64 + 512 * 0.05, 296 - 232 * 0.85, "vetoed", "sjf: mean 1.0 h, longest 55.6 h"),
        (64 + 512 * 0.05, 296 - 232 * 0.05, "best", "limit_8h: mean 1.0 h, longest 25.0 h"),
        (64 + 512 * 0.05, 296 - 232 * 0.05, "safe", "area_4h: mean 1.0 h, longest 25.0 h"),
    ]
    assert [point[2:] for point in points] == [one[2:] for one in wanted]
    for (x, y, *_), one in zip(points, wanted, strict=True):
        assert (float(x), float(y)) == pytest.approx(one[:2], abs=0.11)
    labels = re.findall(r'<text x="[\d.]+" y="[\d.]+">(\w+)</text>', text)
    assert labels == ["fcfs", "sjf", "limit_8h"]


def test_points_differ_without_colour_and_the_figure_has_its_answer_in_words() -> None:
    text = page([FOUND], 0.95)
    look = {kind: dict(re.findall(r"([a-z-]+): ([^;]+);", style)) for kind, style in re.findall(POINTS, text)}
    assert look["vetoed"]["fill"] == "none"
    assert look["best"]["r"] == "8px"  # the others have 5
    assert luminance(look["today"]["fill"]) - luminance(look["safe"]["fill"]) > 0.5
    (said,) = re.findall(r'role="img" aria-label="(.*?)"', text)
    assert "fcfs: mean 2.0 h, longest 27.8 h. limit_8h: mean 1.0 h, longest 25.0 h." in said


def test_the_page_says_who_gains_and_loses_and_what_the_log_records() -> None:
    text = page([FOUND], 0.95)
    assert "Of 57 users, 31 wait clearly less and 4 clearly longer" in text
    assert ["jobs of &lt;1 %", "40", "2.0 min", "30 s", "2.0 h", "1.0 h", "4.6 days", "1 s"] in cells(text)
    assert ["mean wait", "3.0 h", "2.0 h"] in cells(text)
    assert ["99th percentile of waits", "unknown", "10.0 h"] in cells(text)
    assert ["longest wait", "9.3 days", "27.8 h"] in cells(text)
    assert "They differ by what the replay does not model: fair-share" in text
    assert "<li>2,400 jobs of &lt;5&gt; users</li>" in text
    assert "<5>" not in text
    assert ["sjf", "1.0 h", "8.0 h", "55.6 h", "18.0", "the longest wait grows by 100 %"] in cells(text)


def test_a_log_without_limits_has_a_warning() -> None:
    assert "Warning" not in page([FOUND], 0.95)
    without = page([{**FOUND, "limits": False}], 0.95)
    assert f"Warning: {NO_LIMITS}." in without
    assert "Users whose limits" not in without


def test_every_site_has_a_section_and_no_wait_at_all_is_drawn_too() -> None:
    none = {name: {**one, "value": 0.0, "today": 0.0} for name, one in SAME.items()}
    idle = {**FOUND, "scenario": "idle", "orders": [{"name": "fcfs", "for_slurm": False, "vetoes": [], **none}]}
    text = page([FOUND, idle], 0.9)
    assert text.count("<section>") == 2
    assert re.findall(r"<h2>(\w+)</h2>", text) == ["mine", "idle"]
    assert "90 % interval" in text
    assert '<circle cx="89.6" cy="284.4"' in text


def test_users_with_too_long_limits_are_listed() -> None:
    words = re.sub(r"<[^>]+>", " ", page([FOUND], 0.95)).split()
    at = words.index("77")
    assert words[at : at + 10] == ["77", "12", "24.0", "h", "1.0", "min", "4%", "4.0", "min", "4,321"]
