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
from pipeline.config.cards import FORMAT, EventCard, ModelCard, Tensor, Weights, described, difference
from pipeline.config.events import EventLog, EventScenario, Group, Parts, Sampled, Tasks
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
from pipeline.config.params import PARAMS_FILE, AnyScenario, Params, check_params, load_params, repository_root
from pipeline.config.problem import AtOnce, Counts, Demand, Scenario, Streaming, Swf, Synthetic
from pipeline.config.records import Frozen, pick, there_are
from pipeline.config.sites import Site

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
    "Evaluation",
    "EventCard",
    "EventLog",
    "EventRecipe",
    "EventScenario",
    "FinetuneConfig",
    "Frozen",
    "Group",
    "HeuristicKnobs",
    "Linear",
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
    "Sampled",
    "Scenario",
    "Site",
    "Streaming",
    "Swf",
    "Synthetic",
    "Tasks",
    "Tensor",
    "Vector",
    "Weights",
    "check_params",
    "described",
    "difference",
    "load_params",
    "pick",
    "repository_root",
    "there_are",
]
