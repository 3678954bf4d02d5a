"""Test files that start a Slurm, Ray, PostgreSQL, S3, containers or workflows; their tests are marked `live`."""

FILES = {
    "test_containers",
    "test_controller",
    "test_controller_bulk",
    "test_controller_killed",
    "test_controller_networks",
    "test_controller_release",
    "test_executor_stages",
    "test_hooks",
    "test_slurm_files_real",
    "test_slurm_import_real",
    "test_loopback",
    "test_on_ray",
    "test_on_slurm",
    "test_publish_shared",
    "test_relay",
    "test_remotes",
    "test_workflows",
}
