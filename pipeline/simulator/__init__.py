"""The cluster, twice: `timestep` to be read, `batched` to be fast; they agree step for step."""
