"""Refuse a model that was trained for other machines; free of torch."""

from pipeline.config import MachinePark, MachinesCard, MachinesScenario
from pipeline.errors import UserError


def must_fit(name: str, card: MachinesCard, scenario: MachinesScenario, park: MachinePark) -> None:
    """Refuse a model that was trained for other machines.

    Raises:
        UserError: one line for the first thing that differs.
    """
    resources, here = ", ".join(card.resources), ", ".join(park.resources)
    for what, trained, found in (
        ("resources", resources, here),
        ("machines", card.machines, len(park.capacity)),
        ("slots", card.slots, scenario.slots),
        ("dispatch", card.dispatch, scenario.dispatch),
    ):
        if trained != found:
            raise UserError(f"{name}: trained for {what} {trained}; here: {what} {found}")
