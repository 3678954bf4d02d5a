"""Independent tasks of a stage, run in this process, in others, on Ray or on Slurm, with byte-identical results.

The place of execution does not affect results. Its setting is therefore in the environment or in pipeline.toml, which
git ignores, and no stage depends on this package. Results of workers are kept by task until the stage is done.
"""
