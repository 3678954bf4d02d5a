"""Params: a frozen, checked view of params.yaml, free of torch.

Unknown keys are refused by name, every number has its type and range, and derived sizes are properties. The defaults
live in params.yaml; only `Swf` has some here, because `{name: swf, path: ...}` is all a user must write to read a log.
"""

from pipeline.config.acting import A3c, A3cRecipe, Dagger, DaggerRecipe, DeepSets, Ppo, PpoRecipe, Vector
from pipeline.config.cards import FORMAT, ModelCard, Tensor, Weights, described, difference
from pipeline.config.events import EventLog, EventScenario, Group, Sampled, Tasks
from pipeline.config.learning import (
    Agent,
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
from pipeline.config.params import PARAMS_FILE, Params, check_params, load_params, repository_root
from pipeline.config.problem import AtOnce, Counts, Demand, Scenario, Streaming, Swf, Synthetic
from pipeline.config.records import Frozen, pick, there_are

__all__ = [
    "FORMAT",
    "PARAMS_FILE",
    "A3c",
    "A3cRecipe",
    "Agent",
    "AtOnce",
    "Clone",
    "Cnn",
    "Counts",
    "Dagger",
    "DaggerRecipe",
    "DeepSets",
    "Demand",
    "Evaluation",
    "EventLog",
    "EventRecipe",
    "EventScenario",
    "FinetuneConfig",
    "Frozen",
    "Group",
    "HeuristicKnobs",
    "Mlp",
    "ModelCard",
    "NetworkConfig",
    "NoPretrain",
    "Params",
    "Ppo",
    "PpoRecipe",
    "PretrainConfig",
    "Recipe",
    "Reinforce",
    "Sampled",
    "Scenario",
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
