"""Slurm settings for an order of waiting jobs: scale and weights, and the files to install.

At its submission, a job's score is a weighted sum of logarithms; it then falls by 1 per `tau_s` seconds of waiting. The
job with the lowest score starts first. In Slurm, the score becomes the site factor, which `job_submit.lua` sets, and
waiting becomes the age factor: PriorityWeightAge / PriorityMaxAge = scale / tau_s points per second.

Site factors are positive: job_submit/lua converts numbers to unsigned ones, which C does not define for values below 0.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from pipeline.errors import UserError
from pipeline.sites.slurm_config import SlurmConfig

SHORTEST_S, LONGEST_S = 60.0, 365 * 86_400.0  # of limits and run times; a job without a limit counts as the longest
MOST_CPUS = 1e6  # of a job, if the configuration does not state how many the cluster has
MOST_POINTS = 2**32 - 1  # Slurm's priorities are unsigned numbers of 32 bits
LEAST_SCALE, USUAL_SCALE = 100.0, 1000.0
DAY_S, SHORTEST_MAX_AGE_DAYS = 86_400, 14
TEMPLATES = Path(__file__).parent / "templates"
MARGIN = 1.1  # the order is to be stopped if waits exceed the expected ones by this factor
CHANGED = ("JobSubmitPlugins", "PriorityType", "PriorityWeightAge", "PriorityMaxAge")
NAME = re.compile(r"[\w.@$+-]+", re.ASCII)


class SlurmOrder(NamedTuple):
    """Weights of a score, and the seconds of waiting that one unit of it is worth."""

    tau_s: float
    limit: float = 1.0  # of ln(requested limit in s)
    cpus: float = 0.0  # of ln(requested CPUs)
    past: float = 0.0  # of ln(mean of the user's last two run times in s)
    partitions: Mapping[str, float] = {}  # added for jobs of a partition
    users: Mapping[str, float] = {}  # mean of the last two run times, s, by login name
    past_s: float = 3600.0  # in place of that mean, for users without one


class SlurmSettings(NamedTuple):
    """Order in Slurm's units."""

    order: SlurmOrder
    config: SlurmConfig
    scale: float  # points of priority per unit of the score
    reason: str  # for this scale
    top: float  # highest score possible, whose site factor is 1
    most: int  # largest site factor
    weight_age: int
    max_age_days: int


def named_order(feature: str, tau_s: float) -> SlurmOrder:
    """Return the order by 'limit' or by 'area', the limit times the CPUs."""
    return SlurmOrder(tau_s, cpus=1.0 if feature == "area" else 0.0)


def plan_settings(
    order: SlurmOrder, config: SlurmConfig, longest_wait_s: float, scale: float | None = None
) -> SlurmSettings:
    """Choose the age settings and, unless given, the scale; raise a UserError if priorities would exceed 32 bits.

    `longest_wait_s` is the longest wait that is expected with this order.
    """
    low, high = _extremes(order, config)
    chosen, reason = (scale, "as given") if scale else _scale(order, config, high - low)
    days = max(SHORTEST_MAX_AGE_DAYS, math.ceil(max(2 * longest_wait_s, config.max_age_s or 0) / DAY_S))
    weight = round(chosen * days * DAY_S / order.tau_s)
    found = SlurmSettings(order, config, chosen, reason, high, math.ceil(chosen * (high - low)) + 1, weight, days)
    if (highest := highest_priority(found)) > MOST_POINTS:
        raise UserError(
            f"PriorityWeight*: expected priorities up to {MOST_POINTS} with this order, found {highest}: "
            "divide all PriorityWeight* of slurm.conf by the same number"
        )
    return found


def highest_priority(settings: SlurmSettings) -> int:
    """Return the sum of the largest factors."""
    return settings.most + settings.weight_age + sum(kept_weights(settings.config).values())


def kept_weights(config: SlurmConfig) -> dict[str, int]:
    """Return the site's weights other than that of age."""
    return {name: weight for name, weight in config.weights.items() if name != "Age" and weight}


def _extremes(order: SlurmOrder, config: SlurmConfig) -> tuple[float, float]:
    """Return the lowest and the highest score that a job can have."""
    machine = sum(node.cpus for node in config.nodes) or sum(part.cpus for part in config.partitions) or MOST_CPUS
    times = (math.log(SHORTEST_S), math.log(LONGEST_S))
    pairs = [[order.limit * one for one in times], [order.past * one for one in times]]
    pairs += [[0.0, order.cpus * math.log(machine)], [0.0, *order.partitions.values()]]
    return sum(map(min, pairs)), sum(map(max, pairs))


def _scale(order: SlurmOrder, config: SlurmConfig, spread: float) -> tuple[float, str]:
    """Return the points per unit of the score, and why."""
    others = kept_weights(config)
    if not others and config.settings.get("PriorityWeightTRES", "(null)") in ("", "(null)"):
        return USUAL_SCALE, "no other weight is set, so only the ratio of the site factor to age counts"
    if (age := config.weights["Age"]) and config.max_age_s:
        kept = order.tau_s * age / config.max_age_s
        why = "a second of waiting is worth as many points as before, so its balance with the kept weights stays"
    else:
        kept = max(others.values(), default=USUAL_SCALE) / spread
        why = "age had no weight: the shortest and the largest job differ by as much as the largest kept weight"
    if kept < LEAST_SCALE:
        return LEAST_SCALE, f"{why}; this needs {kept:.3g}, which is too coarse"
    return kept, why


class ExpectedWaits(NamedTuple):
    """Waits of a replay."""

    mean_s: float
    p99_s: float
    longest_s: float


def settings_files(settings: SlurmSettings, today: ExpectedWaits, planned: ExpectedWaits) -> dict[str, str]:
    """Return the files to install, by name, initially in mode `observe`; raise a UserError for an unsuitable name.

    They apply to all partitions. `today` and `planned` are waits in replays of the site's present and its new order.
    """
    words = _words(settings) | _wait_words(today, planned)
    words["users"] = _fill("refresh_users.txt", words) if settings.order.past else ""
    names = ["job_submit.lua", "slurm.conf.lines", "rollback.sh", "instructions.txt"]
    found = {name: _fill(name, words) for name in names} | {"job_order.mode": "observe\n"}
    return found | ({"job_order_users.lua": users_table(settings.order.users)} if settings.order.past else {})


def users_table(users: Mapping[str, float]) -> str:
    """Return the table of run times that `job_submit.lua` reads; raise a UserError for a name that is no login name."""
    return "\n".join(
        ["return {", *(f"{_key(name)} = {float(value)!r}," for name, value in sorted(users.items())), "}\n"]
    )


def _key(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UserError(f"expected a name of letters, digits and ._@$+-, found {name[:40]!r}")
    return f'["{name}"]'


class _Text(Template):
    delimiter = "@"


def _fill(name: str, words: Mapping[str, str]) -> str:
    return _Text((TEMPLATES / name).read_text()).substitute(words)


def formula(order: SlurmOrder) -> str:
    """Return the order in words.

    >>> formula(SlurmOrder(28_800, cpus=1))
    'ln(limit) + ln(CPUs) - wait / 8 h, the lowest first'
    """
    terms = {"ln(limit)": order.limit, "ln(CPUs)": order.cpus, "ln(user's last run times)": order.past}
    found = [name if weight == 1 else f"{weight:.3g} {name}" for name, weight in terms.items() if weight]
    found += ["a number per partition"] * bool(order.partitions)
    return f"{' + '.join(found)} - wait / {order.tau_s / 3600:g} h, the lowest first"


def _words(settings: SlurmSettings) -> dict[str, str]:
    """Return the values of the templates that depend on the order and the configuration."""
    order, config = settings.order, settings.config
    before = [f"{name}={config.settings.get(name, 'unknown')}".replace("=(null)", ": no line") for name in CHANGED]
    kept = [f"PriorityWeight{name}={weight}" for name, weight in kept_weights(config).items()]
    return {
        "formula": formula(order),
        "folder": str(Path(config.settings.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent),
        "log": config.settings.get("SlurmctldLogFile", "/var/log/slurm/slurmctld.log"),
        "scale": repr(float(settings.scale)),
        "top": repr(settings.top),
        "tau": repr(float(order.tau_s)),
        "weights": ", ".join(repr(float(number)) for number in order[1:4]),  # limit, CPUs, past
        "offsets": ", ".join(f"{_key(name)} = {float(value)!r}" for name, value in order.partitions.items()),
        "past_s": repr(float(order.past_s)),
        "plugins": ",".join([*(name for name in config.job_submit_plugins if name != "lua"), "lua"]),
        "weight_age": str(settings.weight_age),
        "max_age_days": str(settings.max_age_days),
        "before": ", ".join(before),
        "before_lines": "\n".join(f"   {line}" for line in before),
        "kept": ", ".join(kept) or "no other PriorityWeight* is set",
        "scale_reason": settings.reason,
        "point_s": f"{order.tau_s / settings.scale:.3g}",
        "calc_period": f"{(config.calc_period_s or 300) / 60:g} min",
        "doubling": _doubling(settings),
        "highest": f"{highest_priority(settings):,}",
    }


def _doubling(settings: SlurmSettings) -> str:
    """Describe how much a doubling of the requested limit counts, compared with waiting and the site's weights."""
    order = settings.order
    points, hours = settings.scale * order.limit * math.log(2), order.limit * math.log(2) * order.tau_s / 3600
    text = f"A doubling of the requested limit costs {points:.0f} points, as much as {hours:.1f} h of waiting"
    weights = kept_weights(settings.config).items()
    return ", ".join([text, *(f"{100 * points / weight:.2g} % of PriorityWeight{name}" for name, weight in weights)])


def _wait_words(today: ExpectedWaits, planned: ExpectedWaits) -> dict[str, str]:
    """Return the lines of waits, in hours, and the values at which to stop."""
    stop = ExpectedWaits(*(MARGIN * max(pair) for pair in zip(today, planned, strict=True)))
    rows = {"today": today, "planned": planned, "stop": stop}
    return {name: "".join(f"{value / 3600:11.1f}" for value in row) for name, row in rows.items()}
