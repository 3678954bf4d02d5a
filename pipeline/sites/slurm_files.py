"""Files of Slurm settings: `job_submit.lua`, lines of slurm.conf, a script that undoes them, and instructions."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from pipeline.errors import UserError
from pipeline.sites.slurm_settings import SlurmOrder, SlurmSettings, highest_priority, kept_weights

TEMPLATES = Path(__file__).parent / "templates"
MARGIN = 1.1  # the order is to be stopped if waits exceed the expected ones by this factor
CHANGED = ("JobSubmitPlugins", "PriorityType", "PriorityWeightAge", "PriorityMaxAge")
NAME = re.compile(r"[\w.@$+-]+", re.ASCII)


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
