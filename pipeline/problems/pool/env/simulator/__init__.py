"""The pooled cluster, twice: `reference` to be read, `compiled` to be fast; they agree step for step."""
