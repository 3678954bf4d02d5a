"""A cluster whose log is replayed, to advise it: rows of `sites`, each of the scenario of its name."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipeline.config.records import Frozen, Name, check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params


class Site(Frozen):
    """What a site runs today, and who else may be advised."""

    today: Name  # the heuristic that orders its queue now; with `dispatch: easy`, fcfs is EASY
    agent: Name  # a learned policy, trained on the scenario; it is advised where it is clearly better, or never
    warm_up_days: Annotated[float, Field(ge=0, le=365)] = 7.0  # played before a period and not counted


def check_sites(params: "Params", where: str) -> None:
    """Refuse a site without a scenario of its name, or whose agent is another scenario's.

    Raises:
        UserError: one line for the first such row.
    """
    for name, row in params.sites.items():
        check_known(where, f"sites.{name}", name, params.scenarios)
        check_known(where, f"sites.{name}.agent", row.agent, params.agents)
        home = params.agents[row.agent].scenario
        if home != name:
            raise UserError(
                f"{where}: sites.{name}.agent: expected one of scenario '{name}', '{row.agent}' is of '{home}'"
            )
