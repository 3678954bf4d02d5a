"""Train MaskablePPO to schedule one load, then compare it with every heuristic (under a minute on two cores)."""

import torch
from sb3_contrib import MaskablePPO

import deeprm
from deeprm.sb3 import VecEnv

torch.set_num_threads(2)
envs = VecEnv("deeprm/Pool-v0", num_envs=64, load=130)
envs.seed(1)
shape = {"net_arch": [128, 128], "optimizer_kwargs": {"eps": 1e-5}}
how = {"n_steps": 64, "batch_size": 1024, "n_epochs": 4, "learning_rate": 1e-3, "gamma": 1.0, "ent_coef": 0.003}
model = MaskablePPO("MultiInputPolicy", envs, **how, policy_kwargs=shape, seed=1, verbose=1)
model.learn(200_000)
model.save("maskable_ppo.zip")
found = deeprm.evaluate(model, "deeprm/Pool-v0", load=130)
print(found.markdown)
