"""Recipes: how a model is built and what its training minimises.

A new recipe is a frozen dataclass that overrides what differs.
"""
from pyg_fnri.recipes.frames import draw_frames
from pyg_fnri.recipes.networks import DECODERS, ENCODERS
from pyg_fnri.recipes.paper import PaperRecipe
from pyg_fnri.recipes.quick import QuickRecipe
from pyg_fnri.recipes.recipe import Recipe

__all__ = [
    'DECODERS',
    'ENCODERS',
    'PaperRecipe',
    'QuickRecipe',
    'Recipe',
    'draw_frames',
]
