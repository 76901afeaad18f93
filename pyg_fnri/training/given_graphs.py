"""Training a part of a model on graphs that are given."""
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.recipes import Recipe
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference


class GivenGraphs(RelationalInference):
    """What the regimes share that train the encoder or the decoder alone.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): What to minimise, and how.
        config (Config): How to build both again.
        target (str, optional): The graphs: :obj:`'edge_label'`, the truth,
            or another attribute such as the graphs that inference has found,
            in the latent graph's own layers and types.
            (default: :obj:`'edge_label'`)
    """
    def __init__(
        self,
        model: RelationalAutoEncoder,
        recipe: Recipe,
        config: Config,
        target: str = 'edge_label',
    ) -> None:
        super().__init__(model, recipe, config)
        self.target = target

    def given_types(self, batch: Data) -> Tensor:
        """The given types in the latent graph's own layers, :obj:`[num_edges,
        num_layers]`.

        Raises:
            ValueError: If the systems lack these graphs.
        """
        if self.target == 'edge_label':
            return self.true_types(batch)
        if self.target not in batch:
            raise ValueError(f"The systems have no '{self.target}' that the "
                             f"{' and '.join(self.trained)} could learn.")
        return batch[self.target]
