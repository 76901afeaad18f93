"""Training: recipes, Lightning modules for all models and regimes, runs."""
from typing import TYPE_CHECKING

from pyg_fnri import lazily

if TYPE_CHECKING:
    from pyg_fnri.nn import MODELS
    from pyg_fnri.training.config import REGIMES, Config
    from pyg_fnri.training.em import ExpectationMaximisation
    from pyg_fnri.training.module import (RelationalInference,
                                          SupervisedInference,
                                          TrueGraphPrediction, build_module)
    from pyg_fnri.training.recipes import (DECODERS, ENCODERS, RECIPES,
                                           LawsRecipe, NetworkRecipe,
                                           PaperRecipe, QuickRecipe, Recipe)
    from pyg_fnri.training.run import check_run, fit
    from pyg_fnri.training.trainer import (load_checkpoint, quiet_lightning,
                                           save_checkpoint)
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    'Config', 'DECODERS', 'ENCODERS', 'ExpectationMaximisation', 'LawsRecipe',
    'MODELS', 'NetworkRecipe', 'PaperRecipe', 'QuickRecipe', 'RECIPES',
    'REGIMES', 'Recipe', 'RelationalInference', 'SupervisedInference',
    'TrueGraphPrediction', 'build_module', 'check_run', 'fit',
    'load_checkpoint', 'quiet_lightning', 'save_checkpoint'
]
