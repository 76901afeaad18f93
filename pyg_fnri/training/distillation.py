"""Training the encoder on graphs that inference has found."""
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.recipes import Recipe
from pyg_fnri.training.config import Config
from pyg_fnri.training.supervised import SupervisedInference


class EncoderDistillation(SupervisedInference):
    """Trains the encoder on the graphs :obj:`edge_target` that
    :func:`~pyg_fnri.inference.with_inferred_graphs` adds to systems. The best
    checkpoint is that of the lowest cross-entropy on the graphs found in
    validation systems; labels, where there are any, are only measured by.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): Its learning rate, schedule and latent graph.
        config (Config): How to build both again.
    """
    monitor = ('val_loss', 'min')

    def __init__(
        self,
        model: RelationalAutoEncoder,
        recipe: Recipe,
        config: Config,
    ) -> None:
        super().__init__(model, recipe, config, target='edge_target')
