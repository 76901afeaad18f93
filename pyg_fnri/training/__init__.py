"""Training: Lightning modules for all models, recipes and regimes."""
from pyg_fnri.training.build import build_module
from pyg_fnri.training.checkpoints import load_checkpoint, save_checkpoint
from pyg_fnri.training.config import MODELS, RECIPES, REGIMES, Config
from pyg_fnri.training.distillation import EncoderDistillation
from pyg_fnri.training.em import ExpectationMaximisation
from pyg_fnri.training.em_recipe import EMRecipe, EMSettings
from pyg_fnri.training.logs import (
    ValidationLines,
    make_loggers,
    quiet_lightning,
)
from pyg_fnri.training.module import RelationalInference
from pyg_fnri.training.run import (
    check_burn_in,
    check_run,
    checkpoint_to_resume,
    fit,
    make_trainer,
    start_run,
)
from pyg_fnri.training.supervised import SupervisedInference
from pyg_fnri.training.true_graph import TrueGraphPrediction

__all__ = [
    'Config',
    'EMRecipe',
    'EMSettings',
    'ExpectationMaximisation',
    'MODELS',
    'EncoderDistillation',
    'RECIPES',
    'REGIMES',
    'RelationalInference',
    'SupervisedInference',
    'TrueGraphPrediction',
    'ValidationLines',
    'build_module',
    'check_burn_in',
    'check_run',
    'checkpoint_to_resume',
    'fit',
    'load_checkpoint',
    'make_loggers',
    'make_trainer',
    'quiet_lightning',
    'save_checkpoint',
    'start_run',
]
