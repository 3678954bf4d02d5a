"""`machines`: what people and live clusters ask of policies."""
