"""`site`: describe a site's log, and write the rows for its advice into params.yaml.

`advise --slurm`: write the settings that make Slurm order its queue as that advice says.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline.accounting.output import pseudonyms, read_key
from pipeline.accounting.quotas import read_quotas
from pipeline.accounting.slurm_import import KEY
from pipeline.core import storage
from pipeline.core.config import PARAMS_FILE, Backfilling, Params, check_known, check_params, repository_root
from pipeline.core.config.evaluation import Partition, Qos, Quota, Site, too_few
from pipeline.core.config.parsing import parsed
from pipeline.core.config.records import NAME, NAMED
from pipeline.core.logs.registry import guess, read
from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.storage.params_file import with_rows
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.interactive.logs.overview import tables
from pipeline.progress import progress, say
from pipeline.report.advice import NO_LIMITS
from pipeline.sites.evidence import EVIDENCE, FOLDER, read_evidence
from pipeline.sites.orders import FOR_SLURM, LEARNED, MULTIFACTOR, REPLAYED, replayed, scale_of, weights_of
from pipeline.sites.queue import read_all
from pipeline.sites.quotas import applies, qos_of
from pipeline.sites.rows import RECIPE, known_nodes, site_rows
from pipeline.sites.slurm_config import SlurmConfig, backfill_of, parse_config, partitions_of, unsupported
from pipeline.sites.slurm_settings import ExpectedWaits, SlurmOrder, named_order, plan_settings, settings_files

WEEK_S = 7 * DAY_S
MOST_WEEKS, MOST_USERS = 8, 5  # maximum numbers that are listed
FEWEST_JOBS = 30  # of a user whose mean wait is listed
LONGEST_NAME = 60  # of a site; also used for folders
WORDS = ("null", "true", "false", "yes", "no", "on", "off")  # of YAML


def run(
    params: Params, log: Path, name: str, format: str | None, machines: Sequence[str],
    sure: bool = False, learns: bool = False, nodes: Path | None = None, texts: Mapping[str, Path | None] = {},
    outages: Sequence[Path] = (), quotas: Sequence[Path] = (), key: Path | None = None,
) -> tuple[dict[str, Json], list[str]]:  # fmt: skip
    """Put a log's scenario and site into params.yaml; an existing site gets the new log.

    Return the rows and their changes, and lines that also describe the log. `texts` are files with the output of
    `scontrol`: config, partitions.
    """
    _check_name(params, name)
    known = params.sites[name] if name in params.sites else Site()
    users = known.slurm.users if known.slurm else 0
    limits, qos, users = _quotas(quotas, key or log.parent / KEY) if quotas else (known.quotas, known.qos, users)
    given = {what: path for what, path in texts.items() if path is not None}
    settings = _settings(given, [one.name for one in qos], bool(limits), users)
    if quotas:
        settings["quotas"] = [one.model_dump(mode="json", exclude_defaults=True) for one in limits]
        settings["qos"] = [one.model_dump() for one in qos]
    if quotas and "config" not in given and known.slurm:
        say("--quotas without --config: the weights in the site's row do not change")
    format = format or guess(log)
    nodes = nodes or known_nodes(params, name, format)
    with progress(f"read {log}, percent", 100, brief=True) as advance:
        trace = read(log, format, advance, nodes=nodes)
    listed = Site.model_validate({"partitions": settings.get("partitions", known.partitions)}).partitions
    _check_quotas(limits, trace, listed)
    lines = [*description(trace), *([read_all(outages, trace)[1]] if outages else [])]
    say(*(f"warning: {doubt}" for doubt in (*trace.doubts, *([] if trace.has_estimates else [NO_LIMITS]))))
    with progress(f"fit {log} to its machines", 1, brief=True):
        place = nodes and _named(nodes)
        own = [_named(file) for file in outages]
        rows = site_rows(name, _named(log), format, trace, machines, params, sure, learns, place, settings, own)
    wanted: dict[str, Mapping[str, Mapping[str, Json]]] = {
        "scenarios": {name: rows.scenario},
        "sites": {name: rows.site},
    }
    wanted |= {"agents": rows.agents} if rows.agents else {}
    wanted |= {"gate": {"fewer": rows.fewer}} if rows.fewer else {}
    text, changes = with_rows(str(PARAMS_FILE), storage.read_text(PARAMS_FILE), wanted)
    if rows.agents and too_few(check_params(parsed(text, str(PARAMS_FILE)), str(PARAMS_FILE)), name):
        say(f"gate: {name}: no agent can pass: {rows.windows} windows of the test period are independent, too few")
    if changes:
        storage.write(PARAMS_FILE, text.encode())
    lines += [f"{PARAMS_FILE}: {line}" for line in changes or ["its rows are those of this log"]]
    lines += [f"next: dvc repro advise@{name} (only this site), or make repro (all): {storage.REPORTS}/advice.html"]
    return {"site": name, "rows": wanted, "changes": changes}, lines


def _settings(texts: Mapping[str, Path], qos: Sequence[str], has_quotas: bool, users: int) -> dict[str, Json]:
    """Return the keys of a site's row that its Slurm's configuration sets, and report what is not replayed."""
    rows: dict[str, Json] = {}
    given = {what: storage.read_text(path) for what, path in texts.items()}
    try:
        found = parse_config(**given)
        if "config" in texts:
            rows["backfill"] = backfill_of(found).model_dump()
    except UserError as error:
        raise UserError(f"{', '.join(map(str, texts.values()))}: {error}") from error
    if "partitions" in texts:
        rows["partitions"] = {name: part.model_dump() for name, part in partitions_of(found).items()}
    for line in unsupported(found, replayed(found, bool(qos)), qos) if texts else ():
        say(f"not modelled: {line}")
    if "config" not in texts:
        return rows
    enforced = found.settings.get("AccountingStorageEnforce", "none").lower().split(",")
    if has_quotas and not {"limits", "safe", "all"} & set(enforced):
        say(f"AccountingStorageEnforce={','.join(enforced)}: this cluster enforces no quotas, but they are replayed")
    if (weights := weights_of(found, bool(qos), users)) is None:
        kept = "'today: fcfs'; an existing row keeps its order"
        say(f"{texts['config']}: only the order of submission is replayed, {kept}")
        return rows
    return rows | {"today": MULTIFACTOR, "slurm": weights.model_dump(exclude_unset=True)}


def _quotas(files: Sequence[Path], key: Path) -> tuple[list[Quota], list[Qos], int]:
    """Return the quotas and QOS of files, with the log's numbers of accounts and users, and the number of users."""
    read = [read_quotas(file, lambda names: pseudonyms(names, read_key(key))) for file in files]
    say(*(line for one in read for line in one.lines))
    priorities = {name: priority for one in read for name, priority in one.priorities.items()}
    qos = [Qos(name=name, priority=priority) for name, priority in priorities.items()]
    return [quota for one in read for quota in one.quotas], qos, sum(one.users for one in read)


def _check_quotas(quotas: Sequence[Quota], trace: Trace, partitions: Mapping[str, Partition]) -> None:
    """Report how many quotas apply to jobs of a log; UserError if it lacks what they refer to, or none applies."""
    part_qos = qos_of(trace.partition_names, partitions, trace.partition)
    apply = sum(applies(one, trace.user, trace.group, trace.group_names, part_qos) for one in quotas)
    if quotas and not apply:
        raise UserError("--quotas: none applies to the log: expected its QOS, and the key with which it was imported")
    if quotas:
        say(f"{apply:,} of {len(quotas):,} quotas of QOS and accounts apply to the log")


def _named(file: Path) -> Path:
    """Return a file as params.yaml names it: relative to the repository's root if it is inside."""
    path, root = file.resolve(), repository_root().resolve()
    return path.relative_to(root) if path.is_relative_to(root) else path


def _check_name(params: Params, name: str) -> None:
    """Refuse a name that params.yaml cannot hold, or that another row has."""
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME or name in WORDS:
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST_NAME]
        other = plain if re.fullmatch(NAME, plain) and plain not in WORDS else f"site_{plain}".rstrip("_")
        wanted = f"{NAMED}, up to {LONGEST_NAME}, and no word of YAML"
        raise UserError(f"--name: {wanted}; got '{name[:LONGEST_NAME]}'; '{other}' would be one")
    taken = {**dict.fromkeys(params.scenarios, "scenario"), **dict.fromkeys([*params.judged, *params.plans], "policy")}
    for one in (name, f"{name}_{RECIPE}") if name not in params.sites else ():
        if one in taken:
            raise UserError(
                f"--name {name}: params.yaml has {taken[one]} '{one}', of no such site; choose another name"
            )


def description(trace: Trace) -> list[str]:
    """Return lines on what a log holds: its size, loads, busiest weeks and longest waits."""
    frames = {what: frame for what, (frame, _) in tables(trace).items()}
    overview = frames["overview"].set_index("what")["value"].to_dict()
    load = frames["load"].dropna()
    week = ((trace.submit_s - trace.submit_s[0]) // WEEK_S).astype(np.int64)
    work = np.bincount(week, trace.nodes * trace.run_s * trace.demand[:, 0])
    order = np.argsort(-work, kind="stable")[:MOST_WEEKS]
    busy = ", ".join(f"{k + 1} ({work[k] / work.mean():.1f} times the mean)" for k in order)
    return [
        *trace.notes,
        *(f"{what}: {value:,.10g}" for what, value in overview.items() if not np.isnan(value)),
        *(
            f"load, {name}: {share:.1%} of {capacity:,g}"
            for name, share, capacity in zip(load["resource"], load["load"], load["capacity"], strict=True)
        ),
        f"work that arrived by week, of {len(work)}, the busiest first: {busy}",
        *_waits(trace),
    ]


def _waits(trace: Trace) -> list[str]:
    """Return lines on the longest waits in the log's own history, if it records them."""
    known = ~np.isnan(trace.wait_s)
    if not known.any():
        return ["waits: the log does not record them"]
    wait = trace.wait_s[known]
    p99 = np.quantile(wait, 0.99)
    lines = [f"waits: mean {wait.mean():,.0f} s, 99th percentile {p99:,.0f}, longest {wait.max():,.0f}"]
    names, place = np.unique(trace.user[known], return_inverse=True)
    jobs = np.bincount(place)
    mean = np.bincount(place, wait) / jobs
    users = [k for k in np.argsort(-mean, kind="stable") if names[k] >= 0 and jobs[k] >= FEWEST_JOBS][:MOST_USERS]
    if users:
        means = ", ".join(f"user {int(names[k])} ({mean[k]:,.0f} s)" for k in users)
        lines.append(f"who waits longest in the mean: {means}")
    return lines


def write_slurm_settings(
    params: Params, site: str, folder: Path, policy: str | None, texts: Mapping[str, Path | None]
) -> None:
    """Write the files into a folder, by default for the advised order; UserError if there is none to change to."""
    check_known("params.yaml", "sites", site, params.sites)
    found = read_evidence(site)
    if found is None:
        raise UserError(f"{FOLDER / site / EVIDENCE}: no advice yet; make it by 'dvc repro advise@{site}'")
    if policy is None and found["verdict"] != "use":
        what = f"the verdict is '{found['verdict']}', so there is nothing to change"
        raise UserError(
            f"{site}: {what}; --policy {found['candidate']} writes the settings of the candidate all the same"
        )
    name = policy or str(found["policy"])
    check_known(site, "--policy", name, [order["name"] for order in found["orders"] if order["for_slurm"]])
    waits = {
        order["name"]: ExpectedWaits(*(order[key]["value"] for key in ("wait", "p99_wait", "longest_wait")))
        for order in found["orders"]
    }
    config = parse_config(**{what: storage.read_text(path) for what, path in texts.items() if path is not None})
    feature, tau = FOR_SLURM[name]
    order = SlurmOrder(**found["learned"])._replace(tau_s=tau) if name in LEARNED else named_order(feature, tau)
    scale = _replayed_scale(params, site, order, config)
    settings = plan_settings(order, config, waits[name].longest_s, scale)
    files = settings_files(settings, waits[found["against"]], waits[name])
    row = params.sites[site]
    pairs = [(part, row.partitions.get(name)) for name, part in partitions_of(config).items()]
    same = all(own is not None and (part.tier, part.factor) == (own.tier, own.factor) for part, own in pairs)
    known = {*replayed(config, bool(row.qos))} - (set() if same else {"Partition"})
    qos = {one.name for one in row.qos} - {part.qos for part, own in pairs if own is None or part.qos != own.qos}
    for line in unsupported(config, known if row.slurm else known - {*REPLAYED, "QOS"}, qos):
        say(f"not modelled: {line}")
    ours, theirs = (_said(one) for one in (params.sites[site].backfill, backfill_of(config)))
    if config.settings and ours != theirs:
        again = f"run 'site ... --name {site} --config' and 'dvc repro advise@{site}' again"
        say(f"backfill: the advice was made with {ours}, this cluster has {theirs}: {again}")
    for file, text in files.items():
        storage.write(folder / file, text.encode())
    say(f"{len(files)} files for '{name}' in {folder}; begin with {folder / 'instructions.txt'}")


def _said(backfill: Backfilling) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in backfill.model_dump().items())


def _replayed_scale(params: Params, site: str, order: SlurmOrder, config: SlurmConfig) -> float | None:
    """Return the scale of the replay, None without weights of the site's Slurm; UserError if the weights changed."""
    row = params.sites[site]
    weights = row.slurm
    if weights is None:
        return None
    if weights_of(config, bool(row.qos), weights.users) != weights:
        again = f"run 'site ... --name {site} --config' and 'dvc repro advise@{site}' again"
        raise UserError(
            f"--config: expected the weights of sites.{site}.slurm, with which the advice was made, found others: "
            + ("name --partitions too" if weights.partition and not config.partitions else again)
        )
    return scale_of(order, weights)
