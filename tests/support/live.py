"""Test files that `make test` leaves out: they start real servers, or run whole pipelines and kill processes."""

# These start Slurm, Ray, PostgreSQL, S3, containers or workflows; their tests are marked `live`.
LIVE = {
    "test_containers",
    "test_controller",
    "test_controller_bulk",
    "test_controller_killed",
    "test_controller_networks",
    "test_controller_release",
    "test_executor_stages",
    "test_hooks",
    "test_slurm_settings_real",
    "test_slurm_import_real",
    "test_loopback",
    "test_on_ray",
    "test_on_slurm",
    "test_publish_shared",
    "test_relay",
    "test_release",
    "test_remotes",
    "test_workflows",
}

# These run DVC's whole pipeline or the advice for a whole log, kill processes, or wait for timeouts; their tests are
# marked `whole`.
WHOLE = {
    "test_a3c_killed",
    "test_commands_killed",
    "test_compiling",
    "test_dvc_views",
    "test_evidence",
    "test_everything",
    "test_executor",
    "test_failures",
    "test_farm",
    "test_gateway",
    "test_heuristics_machines",
    "test_kills",
    "test_pipeline",
    "test_policy_passed",
    "test_publish",
    "test_recipe_objective",
    "test_recipes",
    "test_relay_parent",
    "test_sb3_examples",
    "test_signals",
    "test_tracking_outages",
    "test_tutorials",
}
