"""A policy by the name that a user gives: a heuristic, or a model directory."""

from pathlib import Path

from pipeline import storage
from pipeline.config import MachinePark, MachinesCard, MachinesScenario, there_are
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS


def policy_by_name(name: str, scenario: MachinesScenario, site: MachinePark) -> Policy:
    """Return a policy for the machines of a scenario.

    Raises:
        UserError: there is none, or it is a model that was trained for others.
    """
    if name in HEURISTICS:
        return HEURISTICS[name]
    if not Path(name).is_dir():
        near = f"; did you mean '{storage.MODELS / name}'?" if (storage.MODELS / name).is_dir() else ""
        there = there_are(HEURISTICS, name)
        raise UserError(f"unknown policy '{name}': expected a model directory or a heuristic; {there}{near}")
    from pipeline.problems.machines.networks.loading import restore  # torch: 2 s and 250 MB that heuristics do without

    model = storage.read_model(Path(name), MachinesCard)
    must_fit(name, model.card, scenario, site)
    return restore(model.card, model.weights).policy


def must_fit(name: str, card: MachinesCard, scenario: MachinesScenario, site: MachinePark) -> None:
    """Refuse a model that was trained for other machines.

    Raises:
        UserError: one line for the first thing that differs.
    """
    resources, here = ", ".join(card.resources), ", ".join(site.resources)
    for what, trained, found in (
        ("resources", resources, here),
        ("machines", card.machines, len(site.capacity)),
        ("slots", card.slots, scenario.slots),
        ("dispatch", card.dispatch, scenario.dispatch),
    ):
        if trained != found:
            raise UserError(f"{name}: trained for {what} {trained}; here: {what} {found}")
