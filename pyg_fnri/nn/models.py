"""The paper's models, which differ in their latent graph."""
import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Optional

from pyg_fnri.nn.decoder import RolloutDecoder
from pyg_fnri.nn.encoder import MLPEncoder
from pyg_fnri.nn.latent import (
    CategoricalLatent,
    Latent,
    MixedLatent,
    SigmoidLatent,
    check_edge_types,
)
from pyg_fnri.nn.latent.prior import check_prior
from pyg_fnri.nn.multiplex_conv import MultiplexConv
from pyg_fnri.nn.relational_auto_encoder import RelationalAutoEncoder
from pyg_fnri.nn.scaling import MinMaxScaling, Scaling


class NRI(RelationalAutoEncoder):
    r"""Neural relational inference: one layer-graph with an edge type for
    each combination of interactions, :math:`\prod_a K_a` in all.

    Its types are combinations: :meth:`predict` gives :obj:`[num_edges, 1]`.
    Assign :obj:`model.encoder` or :obj:`model.decoder` to use other ones.

    Args:
        in_channels (int): Number of features of a particle in a frame.
        num_steps (int): Number of observed frames.
        num_edge_types (sequence of int): Number of types :math:`K_a` of each
            interaction, null included.
        hidden_channels (int, optional): Size of all hidden layers.
            (default: :obj:`256`)
        dropout (float, optional): Dropout probability of the encoder's hidden
            layers. (default: :obj:`0.0`)
        scaling (Scaling, optional): Units of the model.
            (default: :obj:`MinMaxScaling(in_channels)`)
        **kwargs (optional): Arguments of :class:`CategoricalLatent`; its
            :obj:`prior` that of all combinations, or one for each interaction.
    """
    #: What :meth:`init_latent` takes of the options that not all latent graphs
    #: have: :obj:`'drop_null'`, :obj:`'prior'` (of each interaction) and
    #: :obj:`'node_layers'`. Recipes pass no others but :obj:`undirected`.
    latent_options: ClassVar[Sequence[str]] = ('drop_null', 'prior')

    def __init__(
        self,
        in_channels: int,
        num_steps: int,
        num_edge_types: Sequence[int],
        hidden_channels: int = 256,
        dropout: float = 0.0,
        scaling: Optional[Scaling] = None,
        **kwargs: Any,
    ) -> None:
        latent = self.init_latent(num_edge_types, **kwargs)
        super().__init__(
            MLPEncoder(in_channels, num_steps, latent.num_logits,
                       hidden_channels, dropout),
            latent,
            RolloutDecoder(
                MultiplexConv(in_channels, in_channels, latent.num_channels,
                              hidden_channels)),
            MinMaxScaling(in_channels) if scaling is None else scaling,
        )

    def init_latent(
        self,
        num_edge_types: Sequence[int],
        *,
        prior: Optional[Sequence[Sequence[float]]] = None,
        **kwargs: Any,
    ) -> Latent:
        """The latent family, in which the three models differ."""
        sizes = check_edge_types(num_edge_types)
        if prior is not None and len(prior) == len(sizes):
            prior = check_prior(prior, sizes)
            prior = [[math.prod(p) for p in itertools.product(*prior)]]
        return CategoricalLatent([math.prod(sizes)], prior=prior, **kwargs)


class FNRI(NRI):
    r"""Factorised neural relational inference (section 2.1): a multiplex
    graph, one layer-graph per kind of interaction.

    Arguments as for :class:`NRI`, and:

    Args:
        node_layers (sequence of int, optional): Layer-graphs, from 0, that
            factor over particles, such as those of charges; see
            :meth:`MixedLatent.per_layer`. (default: :obj:`()`)
    """
    latent_options = (*NRI.latent_options, 'node_layers')

    def init_latent(
            self,
            num_edge_types: Sequence[int],
            node_layers: Sequence[int] = (),
            **kwargs: Any,
    ) -> Latent:
        if node_layers in ((), []):
            return CategoricalLatent(num_edge_types, **kwargs)
        return MixedLatent.per_layer(num_edge_types, node_layers, **kwargs)


class SFNRI(NRI):
    r"""fNRI with sigmoids instead of samples (section 2.2), :math:`K_a - 1`
    for each layer-graph, which leave the non-edge without a channel.

    Arguments as for :class:`NRI`, with those of :class:`SigmoidLatent`.
    """
    latent_options = ()

    def init_latent(self, num_edge_types: Sequence[int],
                    **kwargs: Any) -> Latent:
        return SigmoidLatent(num_edge_types, **kwargs)


#: Models by the names that runs and files of the research code go by.
MODELS: dict[str, type[NRI]] = {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
