"""Agents of the problem `groups`: networks, and the algorithms that train them."""
