"""The page of advice: one answer for each site, its evidence, who gains and who loses, and what is not modelled."""

from collections.abc import Mapping, Sequence

from pipeline.comparing.words import percent, span
from pipeline.report import template
from pipeline.sites.evidence import Evidence, read_evidence

FIGURES = (
    ("mean wait", "wait"),
    ("99th percentile of waits", "p99_wait"),
    ("longest wait", "longest_wait"),
    ("mean bounded slowdown", "slowdown"),
)
NO_LIMITS = (
    "the log has no run-time limits (estimates): the replay gives every policy, also the one that the site runs today, "
    "exact run times, which no scheduler has"
)
NOT_MODELLED = (
    "fair-share where params.yaml has no weights of it, limits of QOS and accounts where it has no quotas, drained "
    "nodes where the scenario names no file of outages, reservations that jobs run in, dependencies, and users who "
    "would submit other jobs if they waited less"
)
WIDTH, HEIGHT, MARGIN = 640, 360, 64  # of the figure, px
UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """Return a time in a unit for people.

    >>> duration(42), duration(1_800), duration(30_000), duration(200_000)
    ('42 s', '30.0 min', '8.3 h', '55.6 h')
    >>> duration(300_000)
    '3.5 days'
    """
    for unit, name in UNITS:
        if seconds >= (3 * unit if name == "days" else unit):
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def sentence(found: Evidence) -> str:
    """Return the advice in a sentence."""
    today, best, n = found["against"], found["candidate"], f"n = {found['n']} blocks of three days"
    if found["verdict"] == "stay":
        return f"stay with {today}: on the validation period no safe order was better, or jobs hardly waited"
    wait, slow = found["wait"], found["slowdown"]
    longest, tail = (percent(found[key]["change"]) for key in ("longest_wait", "p99_wait"))
    change = (
        f"mean wait {percent(wait['change'])} ({span(wait['low'], wait['high'])}), mean bounded slowdown "
        f"{percent(slow['change'])} ({span(slow['low'], slow['high'])}), 99th percentile of waits {tail}, longest wait "
        f"{longest}, against {today}, {n}"
    )
    more = found["more_days"]
    more = "" if more is None else f"; about {more} more days of log would tell"
    safe = found["runner_up"]
    fall = found["others"][safe]["wait"] if safe else wait
    other = f"; {safe} is not vetoed: mean wait {percent(fall['change'])} ({span(fall['low'], fall['high'])})"
    return {
        "use": f"use {best}: {change}",
        "equal": f"stay with {today}: {best} is as good: {change}",
        "vetoed": f"stay with {today}: {best} would be faster, but {' and '.join(found['vetoes'])}: {change}"
        + (other if safe else ""),
        "undecided": f"cannot tell, so stay with {today}; with {best}, the best safe order on earlier days, {change}"
        + more,
    }[found["verdict"]]


def answer(site: str, today: str) -> tuple[str, str]:
    """Return the order that a site should use and the reason; today's order if there is no advice."""
    found = read_evidence(site)
    if found is None:
        return today, f"the order of today; 'dvc repro advise@{site}' makes the advice"
    return found["policy"], sentence(found)


def page(found: Sequence[Evidence], confidence: float) -> str:
    """Return the page of advice for sites, as HTML."""
    sites = [
        {
            "it": one,
            "sentence": sentence(one),
            "tables": [
                (name, [(what, *_cells(changes[key], key)) for what, key in FIGURES], _vetoes(one, name))
                for name, changes in ((one["candidate"], one), *one["others"].items())
            ],
            "figure": _figure(one["orders"], one["against"], one["candidate"]),
            "own": [(what, one["own"][key], one[key]["today"]) for what, key in FIGURES[:3]],
            "warning": "" if one["limits"] else NO_LIMITS,
        }
        for one in found
    ]
    shared = {"percent": percent, "duration": duration, "spread": f"{100 * confidence:g} % interval"}
    return template("advice.html").render(
        sites=sites, not_modelled=NOT_MODELLED, size=(WIDTH, HEIGHT, MARGIN), **shared
    )


def _vetoes(one: Evidence, name: str) -> str:
    """Return why an order is excluded by the test period; "" if it is not."""
    return " and ".join(next((order["vetoes"] for order in one["orders"] if order["name"] == name), ()))


def _cells(change: Mapping[str, float], key: str) -> tuple[str, str, str, str, float, float, float]:
    """Return today's value, the order's, the change, its interval, and the interval as a bar from -100 to +100 %."""
    shown = duration if key != "slowdown" else "{:,.1f}".format
    low, high = (min(max(50 + 50 * change[end], 0), 100) for end in ("low", "high"))
    middle = min(max(50 + 50 * change["change"], 0), 100)
    interval = span(change["low"], change["high"])
    return shown(change["today"]), shown(change["value"]), percent(change["change"]), interval, low, high - low, middle


def _figure(orders: Sequence[Evidence], today: str, candidate: str) -> Evidence:
    """Return the places of the orders in the figure of mean wait and longest wait, and its ticks."""
    across, up = ([one[key]["value"] for one in orders] for key in ("wait", "longest_wait"))

    def placed(value: float, values: Sequence[float], size: int) -> float:
        low, high = min(values), max(values)
        return round(MARGIN + (size - 2 * MARGIN) * (0.05 + 0.8 * (value - low) / max(high - low, 1e-9)), 1)

    def kind(one: Evidence) -> str:
        return {today: "today", candidate: "best"}.get(one["name"], "vetoed" if one["vetoes"] else "safe")

    points = [
        {
            "name": one["name"],
            "x": placed(x, across, WIDTH),
            "y": HEIGHT - placed(y, up, HEIGHT),
            "kind": kind(one),
            "labelled": one["name"] in (today, candidate) or not one["for_slurm"],
            "said": f"{one['name']}: mean {duration(x)}, longest {duration(y)}",
        }
        for one, x, y in zip(orders, across, up, strict=True)
    ]
    return {
        "points": points,
        "across": [(placed(x, across, WIDTH), duration(x)) for x in (min(across), max(across))],
        "up": [(HEIGHT - placed(y, up, HEIGHT), duration(y)) for y in (min(up), max(up))],
    }
