"""Commands for people and live clusters; no stage of dvc.yaml depends on this package."""
