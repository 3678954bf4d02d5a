"""The page of advice, and its sentence."""

from pipeline.comparing.advice import Advice, Change, Loser
from pipeline.report.advice import changes, page, sentence

FELL = Change(-0.5, -0.6, -0.4, 10.0, 20.0)
ADVICE = Advice(
    scenario="mine",
    today="fcfs",
    policy="saf",
    learned=False,
    best_heuristic="saf",
    blocks=12,
    jobs=4_000,
    mean=FELL,
    p99=FELL,
    wait=FELL,
    p99_wait=Change(0.1, -0.1, 0.3, 11.0, 10.0),
    candidate="saf",
    clear=True,
    worst_week=(3, 0.25),
    losers=[Loser("user <3>", 40, 900.0, 300.0)],
    agent=("mine_ppo", Change(0.05, -0.1, 0.2, 10.5, 10.0)),
    elsewhere={0.8: "saf", 1.2: "f1"},
    more_days=None,
)
UNCLEAR = ADVICE._replace(policy="fcfs", clear=False, mean=Change(-0.1, -0.4, 0.2, 18.0, 20.0), more_days=84)


def test_the_sentence_says_what_to_use_by_how_much_and_how_sure() -> None:
    assert sentence(ADVICE) == (
        "use saf: -50.0 % (-60.0 to -40.0) in mean bounded slowdown against fcfs, which the site runs today, n = 12 "
        "blocks of three days"
    )
    assert sentence(ADVICE._replace(policy="mine_ppo", learned=True)).startswith("use mine_ppo, a learned policy: ")


def test_the_sentence_says_when_it_cannot_tell() -> None:
    told = "cannot tell, so stay with fcfs: saf has -10.0 % (-40.0 to +20.0) in mean bounded slowdown"
    assert sentence(UNCLEAR) == f"{told}, n = 12 blocks of three days; about 84 more days of log would tell"
    assert sentence(UNCLEAR._replace(blocks=3)) == (
        "cannot tell: 3 blocks of three days in the test period, 4 are the least"
    )
    assert sentence(UNCLEAR._replace(candidate="fcfs")) == (
        "stay with fcfs: validation found no heuristic that is better"
    )


def test_what_would_change_the_advice_is_told() -> None:
    assert changes(UNCLEAR) == [
        "at 20 % less load, saf stays the best heuristic (on the validation period)",
        "at 20 % more load, f1 would be the best heuristic (on the validation period)",
        "the learned mine_ppo is not clearly better than saf on the test period (+5.0 %, -10.0 to +20.0)",
        "about 84 more days of log, if the difference does not change",
    ]


def test_the_page_holds_the_figures_and_escapes_what_a_log_says() -> None:
    text = page([ADVICE, UNCLEAR], 0.95)
    assert text.count("<section>") == 2
    assert "<td>mean bounded slowdown</td><td>20.00</td><td>10.00</td><td>-50.0 %</td><td>-60.0 to -40.0</td>" in text
    assert "user &lt;3&gt;" in text
    assert "user <3>" not in text
    assert "Worst week: week 3, +25.0 %" in text
    assert "--policy saf</pre>" in text
    told = page([ADVICE._replace(policy="saf+predictions")], 0.95)
    assert "--policy saf</pre>" in told
    assert "first write <code>policies_know: predictions</code> into the scenario&#39;s row" in told
    assert "policies_know" not in text
    limits = page([ADVICE._replace(needs="estimates")], 0.95)
    assert "<code>policies_know: estimates</code>" in limits
    assert "run-time limits" not in text
    assert "Warning: the log has no run-time limits (estimates)" in page([ADVICE._replace(limits=False)], 0.95)
    assert "95 % interval" in text
    assert "range over blocks" in page([ADVICE._replace(blocks=9)], 0.95)
