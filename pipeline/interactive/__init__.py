"""What people and live clusters ask of policies; no stage of dvc.yaml runs it."""
