"""Params: a frozen, checked view of params.yaml, which does not import torch.

Unknown keys are refused by name, and every number has its type and range. Defaults are in params.yaml, except for logs:
`{name: swf, path: ...}` is enough to read one.
"""

from pipeline.core.config.evaluation import Backfilling, Evaluation, External, Multifactor, Partition, Site, Vetoes
from pipeline.core.config.groups.learning import Dqn, DqnRecipe, GroupsCard, QNetworkConfig, Replay, WorthConfig
from pipeline.core.config.groups.scenario import GroupsLog, GroupsScenario, Sinusoidal
from pipeline.core.config.learning import Card, Evolution, EvolutionRecipe, NoPretrain
from pipeline.core.config.machines.learning import MachinesAgent, MachinesCard, MachinesEvolution, MachinesPlan
from pipeline.core.config.machines.scenario import Group, MachinePark, MachinesLog, MachinesScenario, Sampled, Tasks
from pipeline.core.config.params import PARAMS_FILE, Params, check_params, load_params, raw_params, repository_root
from pipeline.core.config.pool.heuristics import Hindsight, LinearRuleSearch, PoolKnobs, PoolPlan
from pipeline.core.config.pool.learning import Clone, Cnn, Mlp, PoolAgent, PoolCard, PoolEvolution, Recipe, Reinforce
from pipeline.core.config.pool.scenario import AtOnce, Demand, PoolLog, PoolScenario, Streaming, Synthetic
from pipeline.core.config.problems import Agent, FinetuneConfig, PretrainConfig
from pipeline.core.config.records import Counts, Frozen, Instances, check_known, known_names, pick
