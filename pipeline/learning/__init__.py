"""Parts that the learning algorithms of all problems share."""
