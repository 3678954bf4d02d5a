"""The page shows text and nothing but text."""

import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from pipeline.serving.app import LONGEST, MOST_ROWS, page
from pipeline.serving.records import ActivePolicy, RecentDecisions, ServedPolicy, reply_of
from pipeline.stages.serve import read_verdict

ACTIVE = ActivePolicy(
    scenario="machines", policy="sjf", digest="0123456789", ready=True, fallback="fcfs", limit_ms=200.0, restarts=0
)
TEXTUAL = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "div", "span"}
TAGS = TEXTUAL | {"table", "tr", "th", "td"}


class Tags(HTMLParser):
    """Which tags and attributes there are, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = set[str](), set[str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(state: Any, decision: Any, why: str = "") -> RecentDecisions:
    found = RecentDecisions()
    found.record(to_json(state), reply_of("s", ServedPolicy("sjf", "sjf", "0"), why, to_json(decision)), why)
    return found


def test_nothing_was_asked_yet() -> None:
    assert "No decision yet" in page(ACTIVE, RecentDecisions())


def test_order_starts_and_queue_are_tables() -> None:
    waiting = [{"id": str(k), "demand": {"cpu": 1.5}} for k in range(MOST_ROWS + 1)]
    order = [{"job": "7", "score": -3.25}, {"job": "8", "score": None}]
    said = Tags(page(ACTIVE, shown({"now": 5.0, "waiting": waiting}, {"order": order, "more": False}))).text
    assert "decided: order: 2" in said
    assert "-3.25" in said
    assert f"asked: waiting: {MOST_ROWS + 1}, the first {MOST_ROWS}" in said
    assert "cpu 1.5" in said


def test_why_the_fallback_decided_is_told() -> None:
    said = Tags(page(ACTIVE, shown({}, {}, "no answer within 5 ms"))).text
    assert said.count("no answer within 5 ms") == 2
    assert "1, of them 1 by the fallback" in said


def test_a_policy_that_does_not_answer_and_a_champion_that_is_not_loaded_are_told() -> None:
    active = ACTIVE.model_copy(update={"ready": False, "said": "it is <b>broken</b>"})
    said = page(active, RecentDecisions())
    assert "does not answer: the fallback decides" in said
    assert "it is &lt;b&gt;broken&lt;/b&gt;" in said


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=10,
)
NASTY = st.sampled_from(
    ["<script>", '"><img src=x onerror=alert(1)>', "&lt;", "</table>", "\u202e", "javascript:1", "'"]
)


@given(st.dictionaries(NASTY | st.text(max_size=9), ANYTHING | NASTY | st.lists(NASTY), max_size=4), NASTY | st.text())
def test_whatever_comes_is_text(told: dict[str, Any], why: str) -> None:
    said = page(ACTIVE, shown(told, told, why))
    found = Tags(said)
    assert found.tags <= TAGS
    assert found.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class"}
    assert max(len(cell) for cell in re.findall(r"<td>(.*?)</td>", said) or [""]) <= 6 * (LONGEST + 1)


def test_what_shadow_said_is_text(tmp_path: Path) -> None:
    verdict = partial(read_verdict, tmp_path)
    assert verdict() == read_verdict(None) == ()
    (tmp_path / "verdict.txt").write_text("work: mean wait, s: better\n<script>x</script>\n")
    shown = RecentDecisions(verdict=verdict())
    found = Tags(page(ACTIVE, shown))
    assert "Last verdict of mode shadow" in found.text
    assert "work: mean wait, s: better" in found.text
    assert "<script>x</script>" in found.text
    assert found.tags <= TAGS
