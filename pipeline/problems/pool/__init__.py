"""One pooled cluster, scheduled in steps: DeepRM, DeepRM2, DeepRM_Off and DeepRM3."""
