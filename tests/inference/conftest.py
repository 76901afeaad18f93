"""Fixtures of systems whose laws are known."""
from known_laws import *  # noqa: F401,F403
