"""Does a model know the machines of a Slurm? Where it does not, it decides for no queue, and the start says so."""

from collections.abc import Iterator, Sequence

from pipeline.config import Params
from pipeline.live.deciding import RefusedError
from pipeline.problems.machines.live.deciding import from_state, must_know
from pipeline.problems.machines.live.state import MachinesState
from pipeline.problems.machines.user_jobs import park_of
from pipeline.steering.competing import without_jobs
from pipeline.steering.rows import NodeRow
from pipeline.steering.states import checked, state_of


def misfits(params: Params, scenario: str, nodes: Sequence[NodeRow]) -> Iterator[str]:
    """Yield a line for each queue whose nodes a model of a scenario does not know."""
    park = park_of(params, scenario)
    for pool in without_jobs(nodes):
        state = checked(MachinesState, state_of(pool, 0.0, park.resources, 1.0))
        assert isinstance(state, MachinesState)
        try:
            must_know(from_state(params, scenario, state), park)
        except RefusedError as error:
            yield f"{', '.join(pool.partitions)}: the model refuses these nodes ({error}): Slurm's own order stands"
