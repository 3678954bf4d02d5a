"""`advise --slurm`: write the settings that make Slurm order its queue as a site's advice says."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Backfilling, Params, check_known
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.sites.evidence import EVIDENCE, FOLDER, read_evidence
from pipeline.sites.multifactor import REPLAYED, replayed, scale_of, weights_of
from pipeline.sites.orders import FOR_SLURM, LEARNED
from pipeline.sites.slurm_config import SlurmConfig, backfill_of, parse_config, partitions_of, unsupported
from pipeline.sites.slurm_files import ExpectedWaits, settings_files
from pipeline.sites.slurm_settings import SlurmOrder, named_order, plan_settings


def run(params: Params, site: str, folder: Path, policy: str | None, texts: Mapping[str, Path | None]) -> None:
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
        say(f"backfill: the advice was made with {ours}, this Slurm has {theirs}: {again}")
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
