"""Independent tasks of a stage, run in this process, in others, on Ray or on Slurm, with the same bytes everywhere.

The place of execution is no parameter of a result: the setting is in the environment or in pipeline.toml, which git
ignores, and no stage depends on this package. Results of workers are kept by task until the stage is done.
"""
