"""The shared cluster, twice: `reference` to be read, `compiled` to be fast; they agree event for event."""
