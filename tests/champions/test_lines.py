"""champions.yaml: a line moves, and all else in the file stays."""

import pytest

from pipeline.champions.lines import (
    Champion,
    PolicyRef,
    champions_in,
    digest_of_tuned,
    promoted,
    rolled_back,
    with_line,
)
from pipeline.errors import UserError

HOLD = PolicyRef(policy="hold", digest="ab", tuned={"hold": 10.0}, verdict="first: there was none")
LEARNED = PolicyRef(policy="deeprm3", digest="cd.dir", verdict="better: -5.0 %")
TEXT = """# Who is champion.

# Short runs.
online:
  policy: hold
  digest: ab  # of its name and number
  tuned:
    hold: 10.0
  verdict: 'first: there was none'
# Streams.
streams:
  policy: sjf
  digest: ef
  verdict: the rule that people use
"""


def test_a_promotion_moves_one_line_and_keeps_comments() -> None:
    text = with_line(TEXT, "online", promoted(champions_in(TEXT)["online"], LEARNED))
    assert champions_in(text)["online"] == Champion(**LEARNED.model_dump(), previous=HOLD)
    assert champions_in(text)["streams"] == champions_in(TEXT)["streams"]
    assert text.startswith("# Who is champion.\n\n# Short runs.\nonline:\n  policy: deeprm3\n")
    assert text.partition("# Streams.")[2] == TEXT.partition("# Streams.")[2]


def test_a_rollback_brings_the_champion_before_back_and_keeps_the_other_out() -> None:
    text = with_line(TEXT, "online", promoted(champions_in(TEXT)["online"], LEARNED))
    back = rolled_back(champions_in(text)["online"], "online")
    assert back == Champion(**HOLD.model_dump(), rolled_back=("cd.dir",))
    again = with_line(text, "online", back)
    assert champions_in(again)["online"] == back
    with pytest.raises(UserError, match=r"^champions\.yaml: online: the line holds no earlier champion; 'git log"):
        rolled_back(back, "online")


def test_the_first_line_stands_under_the_comments() -> None:
    text = with_line("# Nobody yet.\n", "online", promoted(None, HOLD))
    assert text.startswith("# Nobody yet.\nonline:\n  policy: hold\n")
    assert champions_in(text) == {"online": Champion(**HOLD.model_dump())}
    assert champions_in("# Nobody yet.\n") == {}


def test_another_number_is_another_champion() -> None:
    assert digest_of_tuned("hold", {"hold": 10.0}) != digest_of_tuned("hold", {"hold": 11.0})
    assert digest_of_tuned("sjf", {}) != digest_of_tuned("fcfs", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("online: [", "champions.yaml:1: not YAML: "),
        ("- online", "champions.yaml: expected a line for each scenario, found "),
        ("online: {policy: sjf, verdict: v}", "champions.yaml: online: digest: missing key"),
        ("online: {policy: sjf, digest: a, verdict: v, why: x}", "champions.yaml: online: why: unknown key"),
    ],
)
def test_what_is_no_line_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as found:
        champions_in(text)
    assert str(found.value).startswith(said)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("head", ['"online":', "online :", "? online\n:"])
def test_a_line_that_cannot_be_moved_without_another_change_stays(head: str) -> None:
    text = f"# Ours.\n{head} {{policy: hold, digest: ab, verdict: v}}\n"
    before = champions_in(text)["online"]
    with pytest.raises(UserError, match=r"^champions\.yaml"):
        with_line(text, "online", promoted(before, LEARNED))
