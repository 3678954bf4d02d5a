"""Networks of many machines: an actor and a critic over the same features.

`vector` is Deepk8s's (section 4.4, Figure 3): all features in one vector, two layers shared by actor and critic, for
one cluster size. `deepsets` scores every pair of job and machine with the same weights (Zaheer et al. 2017), from
features of the job, the machine, the pair, and of all jobs and machines together (means and maxima). It therefore takes
any number of jobs and machines. `linear` is a sum of weighted features, as many heuristics are.
"""

import torch
from torch import Tensor, nn

from pipeline.learning import stored
from pipeline.problems.machines.agents.networks.features import AREA, AREA_AHEAD, DURATION, THERE, Features, Shape

BEGINS = {"area": AREA, "area_ahead": AREA_AHEAD}  # initially, jobs with the smallest value go first
LITTLE = -20.0  # initial score of void: below that of any job
SHARPNESS = 4.0  # initial, for a network that begins as SJF: half the duration is four times as likely
VOID_LATER = -60.0  # initial score of void in such a network, below that of a job of 10^10 units of time


class ActorCritic(nn.Module):
    """Logits of the actions, void last, and the value of the state."""

    shape: Shape
    scale: Tensor  # [1]  the critic's unit of cost; 0 = not yet known

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        stored.initialise_mkl()
        self.shape = shape
        self.register_buffer("scale", torch.zeros(1))

    def forward(self, inputs: "Inputs") -> tuple[Tensor, Tensor]:
        """Return logits [D, A] and values [D]."""
        raise NotImplementedError


class Inputs:
    """Features as tensors."""

    def __init__(self, observed: Features) -> None:
        self.job, self.machine, self.pair, self.rest, self.may = map(torch.from_numpy, observed)


class Vector(ActorCritic):
    """Deepk8s's network, which scores void and each placement of n slots on m machines."""

    def __init__(self, shape: Shape, hidden: tuple[int, int]) -> None:
        super().__init__(shape)
        size = shape.slots * shape.of_job + shape.machines * shape.of_machine + shape.of_rest
        self.shared = nn.Sequential(nn.Linear(size, hidden[0]), nn.ReLU(), nn.Linear(hidden[0], hidden[1]), nn.ReLU())
        self.actor = nn.Linear(hidden[1], shape.slots * shape.machines + 1)
        self.critic = nn.Linear(hidden[1], 1)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Return logits [decisions, A] and values."""
        everything = torch.cat([inputs.job.flatten(1), inputs.machine.flatten(1), inputs.rest], dim=1)
        common = self.shared(everything)
        return self.actor(common), self.critic(common)[:, 0]


class DeepSets(ActorCritic):
    """Scores of pairs with shared weights."""

    def __init__(self, shape: Shape, hidden: int, begins: str = "seed") -> None:
        super().__init__(shape)
        self.of_job = nn.Sequential(nn.Linear(shape.of_job, hidden), nn.ReLU())
        self.of_machine = nn.Sequential(nn.Linear(shape.of_machine, hidden), nn.ReLU())
        self.of_all = nn.Sequential(nn.Linear(3 * hidden + shape.of_rest, hidden), nn.ReLU())
        self.job_part = nn.Linear(hidden, hidden)
        self.machine_part = nn.Linear(hidden, hidden, bias=False)
        self.pair_part = nn.Linear(shape.of_pair, hidden, bias=False)
        self.all_part = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1)
        self.direct = nn.Linear(shape.of_job, 1, bias=False)  # heuristics are mostly sums of logarithms
        self.void = nn.Linear(hidden, 1)
        self.critic = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        if begins == "sjf":  # only duration counts, void is below all; hidden units then learn corrections
            with torch.no_grad():
                for weight in (*self.score.parameters(), self.direct.weight, self.void.weight):
                    weight.zero_()
                self.direct.weight[0, DURATION] = -SHARPNESS
                self.void.bias.fill_(VOID_LATER)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Return logits [D, A] and values [D]."""
        there = inputs.job[:, :, THERE] > 0
        row, slot = there.nonzero(as_tuple=True)  # waiting jobs only: most slots may be empty
        job, machine = self.of_job(inputs.job[row, slot]), self.of_machine(inputs.machine)
        nothing = job.new_zeros(len(there), job.shape[1])
        mean = nothing.index_add(0, row, job) / there.sum(dim=1, keepdim=True).clamp(min=1)
        most = nothing.scatter_reduce(0, row[:, None].expand_as(job), job, "amax")
        common = self.of_all(torch.cat([mean, most, machine.mean(dim=1), inputs.rest], dim=1))
        hidden = (
            # index_select: the gradient of `[row]` is summed by several threads in no fixed order
            (self.job_part(job) + self.all_part(common).index_select(0, row))[:, None]
            + self.machine_part(machine).index_select(0, row)
            + self.pair_part(inputs.pair[row, slot])
        )
        placed = self.score(torch.relu(hidden))[:, :, 0] + self.direct(inputs.job[row, slot])
        scores = placed.new_zeros(*there.shape, machine.shape[1]).index_put((row, slot), placed)
        return torch.cat([scores.flatten(1), self.void(common)], dim=1), self.critic(common)[:, 0]


class Linear(ActorCritic):
    """Sum of weighted features that begins as a heuristic; there is no critic, so all values are 0."""

    def __init__(self, shape: Shape, begins: str = "area") -> None:
        super().__init__(shape)
        of_job = torch.zeros(shape.of_job)
        of_job[BEGINS[begins]] = -1.0
        self.of_job = nn.Parameter(of_job)
        # With one machine a pair is its job, and without void there is nothing to weigh it against.
        self.of_pair = nn.Parameter(torch.zeros(shape.of_pair if shape.machines > 1 else 0))
        self.void = nn.Parameter(torch.full((int(shape.void),), LITTLE))

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Return logits [D, A] and values [D]."""
        scores = (inputs.job @ self.of_job)[:, :, None] + inputs.pair[..., : len(self.of_pair)] @ self.of_pair
        void = self.void.expand(scores.shape[0], -1) if len(self.void) else scores.new_zeros(scores.shape[0], 1)
        return torch.cat([scores.flatten(1), void], dim=1), torch.zeros(scores.shape[0])
