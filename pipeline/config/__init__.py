"""Params: a frozen, checked view of params.yaml, free of torch.

Unknown keys are refused by name, every number has its type and range, and derived sizes are properties. The defaults
live in params.yaml; only `Swf` has some here, because `{name: swf, path: ...}` is all a user must write to read a log.
"""

from pipeline.config.acting import (
    A3c,
    A3cRecipe,
    Cem,
    CemRecipe,
    Dagger,
    DaggerRecipe,
    DeepSets,
    Linear,
    Ppo,
    PpoRecipe,
    Vector,
)
from pipeline.config.cards import FORMAT, EventCard, GroupCard, ModelCard, Tensor, Weights, described, difference
from pipeline.config.events import EventLog, EventScenario, Group, Parts, Sampled, Tasks
from pipeline.config.families import FamilySearch
from pipeline.config.groups import Dqn, DqnRecipe, GroupLog, GroupQ, GroupScenario, Replay, Swinging
from pipeline.config.hindsight import Hindsight, must_be_solvable
from pipeline.config.learning import (
    Agent,
    AnyRecipe,
    Clone,
    Cnn,
    Evaluation,
    EventRecipe,
    FinetuneConfig,
    HeuristicKnobs,
    Mlp,
    NetworkConfig,
    NoPretrain,
    PretrainConfig,
    Recipe,
    Reinforce,
)
from pipeline.config.mixture import Imitate, Mixture, Sets, StreamWindows
from pipeline.config.params import PARAMS_FILE, AnyScenario, Params, check_params, load_params, repository_root
from pipeline.config.problem import AtOnce, Counts, Demand, Scenario, Streaming, Swf, Synthetic
from pipeline.config.records import Frozen, pick, there_are
from pipeline.config.sites import Site
from pipeline.config.small import smallest

__all__ = [
    "FORMAT",
    "PARAMS_FILE",
    "A3c",
    "A3cRecipe",
    "Agent",
    "AnyRecipe",
    "AnyScenario",
    "AtOnce",
    "Cem",
    "CemRecipe",
    "Clone",
    "Cnn",
    "Counts",
    "Dagger",
    "DaggerRecipe",
    "DeepSets",
    "Demand",
    "Dqn",
    "DqnRecipe",
    "Evaluation",
    "EventCard",
    "EventLog",
    "EventRecipe",
    "EventScenario",
    "FamilySearch",
    "FinetuneConfig",
    "Frozen",
    "Group",
    "GroupCard",
    "GroupLog",
    "GroupQ",
    "GroupScenario",
    "HeuristicKnobs",
    "Hindsight",
    "Imitate",
    "Linear",
    "Mixture",
    "Mlp",
    "ModelCard",
    "NetworkConfig",
    "NoPretrain",
    "Params",
    "Parts",
    "Ppo",
    "PpoRecipe",
    "PretrainConfig",
    "Recipe",
    "Reinforce",
    "Replay",
    "Sampled",
    "Scenario",
    "Sets",
    "Site",
    "StreamWindows",
    "Streaming",
    "Swf",
    "Swinging",
    "Synthetic",
    "Tasks",
    "Tensor",
    "Vector",
    "Weights",
    "check_params",
    "described",
    "difference",
    "load_params",
    "must_be_solvable",
    "pick",
    "repository_root",
    "smallest",
    "there_are",
]
