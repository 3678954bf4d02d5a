"""Params: a frozen, checked view of params.yaml, which does not import torch.

Unknown keys are refused by name, and every number has its type and range. Defaults are in params.yaml, except for logs:
`{name: swf, path: ...}` is enough to read one.
"""

from pipeline.core.config.evaluation import (
    Backfilling,
    Evaluation,
    External,
    Gate,
    Multifactor,
    Partition,
    Site,
    Vetoes,
    Watch,
    too_few,
)
from pipeline.core.config.groups.learning import (
    Dqn,
    DqnRecipe,
    GroupsAgent,
    GroupsCard,
    QNetworkConfig,
    Replay,
    WorthConfig,
)
from pipeline.core.config.groups.scenario import GroupsLog, GroupsScenario, Sinusoidal
from pipeline.core.config.learning import Card, Evolution, EvolutionRecipe, NoPretrain
from pipeline.core.config.machines.learning import (
    A3c,
    A3cRecipe,
    Dagger,
    DaggerRecipe,
    DeepSets,
    Linear,
    MachinesAgent,
    MachinesCard,
    MachinesEvolution,
    MachinesKnobs,
    MachinesNetworkConfig,
    MachinesPlan,
    MachinesRecipe,
    Ppo,
    PpoRecipe,
    Vector,
)
from pipeline.core.config.machines.scenario import Group, MachinePark, MachinesLog, MachinesScenario, Sampled, Tasks
from pipeline.core.config.params import PARAMS_FILE, Params, check_params, load_params, raw_params, repository_root
from pipeline.core.config.pool.heuristics import LinearRuleSearch, PoolKnobs, PoolPlan
from pipeline.core.config.pool.hindsight import Hindsight
from pipeline.core.config.pool.learning import (
    Clone,
    Cnn,
    Mlp,
    PoolAgent,
    PoolCard,
    PoolEvolution,
    PoolNetworkConfig,
    Recipe,
    Reinforce,
    Scores,
    StreamPieces,
    Transfer,
    ValueBaseline,
)
from pipeline.core.config.pool.scenario import AtOnce, Demand, PoolLog, PoolScenario, Streaming, Synthetic
from pipeline.core.config.problems import Agent, FinetuneConfig, PretrainConfig
from pipeline.core.config.records import Counts, Frozen, Instances, check_known, known_names, pick
