"""From settings to a module that can be trained."""
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference
from pyg_fnri.training.supervised import SupervisedInference
from pyg_fnri.training.true_graph import TrueGraphPrediction

MODULES: dict[str, type[RelationalInference]] = {
    'learned': RelationalInference,
    'supervised': SupervisedInference,
    'true_graph': TrueGraphPrediction,
}


def build_module(config: Config) -> RelationalInference:
    """A new module of the regime that the settings name, with new weights."""
    return MODULES[config.regime](config.build_model(), config.build_recipe(),
                                  config)
