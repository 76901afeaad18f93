"""Recipes: how a model is built and what its training minimises.

A new recipe is a frozen dataclass that overrides what differs.
"""
from .frames import draw_frames
from .networks import DECODERS, ENCODERS
from .paper import PaperRecipe
from .quick import QuickRecipe
from .recipe import Recipe

__all__ = [
    'DECODERS',
    'ENCODERS',
    'PaperRecipe',
    'QuickRecipe',
    'Recipe',
    'draw_frames',
]
