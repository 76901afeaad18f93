"""The paper's models: an encoder, a latent graph and a decoder together."""
import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.decoder import Decoder, RolloutDecoder
from pyg_fnri.nn.encoders import MLPEncoder, UniformEncoder
from pyg_fnri.nn.latent import (CategoricalLatent, Latent, SigmoidLatent,
                                check_edge_types, check_prior, most_probable)
from pyg_fnri.nn.multiplex_conv import EquivariantConv, MultiplexConv
from pyg_fnri.nn.scaling import MinMaxScaling, Scaling, per_mass


class RelationalAutoEncoder(torch.nn.Module):
    """Infers the interaction graph of a system from its trajectories and
    predicts how it goes on, in physical units (section 1.1).

    Args:
        encoder: From :obj:`(x, edge_index)` to :obj:`[num_edges, num_logits]`.
        latent: What the logits mean.
        decoder: Predicts trajectories over :obj:`latent.num_channels` channels.
        scaling: Units of encoder and decoder.
    """
    def __init__(self, encoder: torch.nn.Module, latent: Latent,
                 decoder: Decoder, scaling: Scaling) -> None:
        super().__init__()
        self.encoder = encoder
        self.latent = latent
        self.decoder = decoder
        self.scaling = scaling

    def reset_parameters(self) -> None:
        reset(self.encoder)
        reset(self.decoder)

    def encode(self, x: Tensor, edge_index: Tensor,
               batch: Optional[Tensor] = None) -> Tensor:
        """Logits :obj:`[num_edges, num_logits]` from observed trajectories
        :obj:`[num_nodes, num_steps, num_features]` of systems :obj:`batch`."""
        logits = self.encoder(self.scaling(x), edge_index)
        return self.latent.tie(logits, edge_index, batch)

    def decode(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
               pred_steps: int = 1) -> Tensor:
        """As :meth:`Decoder.forward`."""
        out = self.decoder(self.scaling(x), edge_index, edge_attr, pred_steps)
        return self.scaling.inverse(out)

    def forward(
            self, x: Tensor, edge_index: Tensor, y: Optional[Tensor] = None,
            pred_steps: int = 1, tau: float = 0.5, hard: bool = False,
            generator: Optional[torch.Generator] = None
    ) -> tuple[Tensor, Tensor]:
        """Infers a graph from :obj:`x`, and predicts along :obj:`y` (by default
        :obj:`x`): logits :obj:`[num_edges, num_logits]` and frames 1, ..., T -
        1 of :obj:`y`, :obj:`[num_nodes, T - 1, num_features]`."""
        logits = self.encode(x, edge_index)
        edge_attr = self.latent.sample(logits, tau, hard, generator)
        y = x if y is None else y
        return logits, self.decode(y, edge_index, edge_attr, pred_steps)

    def posterior(self, data: Data) -> list[Tensor]:
        """Probabilities :obj:`[num_edges, K_a]` of each layer-graph's types:
        the encoder's, and where the decoder's messages add up, those by which
        they explain the observed frames."""
        return self.relax(self.one_pass(data)[1], data)

    def predict(self, data: Data) -> Tensor:
        """The most probable graph, :obj:`[num_edges, num_layers]` int64."""
        return self.infer(data)[0]

    def infer(self, data: Data) -> tuple[Tensor, list[Tensor]]:
        """The most probable graph and its :meth:`posterior`."""
        if isinstance(self.encoder, UniformEncoder):
            raise ValueError("Force laws have no encoder that infers graphs; "
                             "take those of pyg_fnri.inference.refine(model, "
                             "data).")
        posterior = self.posterior(data)
        return most_probable(posterior), posterior

    def one_pass(self, data: Data) -> tuple[Tensor, list[Tensor]]:
        """The same by the encoder alone, as in the paper."""
        with _inference(self):
            logits = self.encode(data.x, data.edge_index, data.get('batch'))
        posterior = self.latent.posterior(logits)
        _check_finite(posterior)
        return most_probable(posterior), posterior

    def relax(self, posterior: list[Tensor], data: Data,
              frames: Optional[tuple[Tensor, Tensor]] = None) -> list[Tensor]:
        """The posterior by which messages that add up explain observed frames,
        from the encoder's on, which stays with other decoders. Or those of
        other :obj:`frames`: states :obj:`[num_nodes, T, num_features]`, in the
        model's units, and those that follow."""
        over_step: Any = self.decoder.layer
        layer = getattr(over_step, 'layer', None)
        if not isinstance(layer, EquivariantConv):
            return posterior
        # Sums of many terms need single precision.
        whole = torch.autocast(data.x.device.type, enabled=False)
        with _inference(self), whole:
            frequency = None  # Few frames would say less than it does.
            if frames is None:
                x, frequency = self.scaling(data.x), self.latent.frequency
                frames = x[:, :-1], x[:, 1:]
            state, target = frames
            step = over_step.linear_step
            change = (target - step(state)) / step.scale - layer.lin_own(state)
            effects = layer.effects(state, data.edge_index)
            effects = per_mass(effects.flatten(1), data).view_as(effects)
            posterior = self.latent.mean_field(posterior, effects, change, data,
                                               frequency)
        _check_finite(posterior)
        return posterior

    def predict_trajectory(self, data: Data, num_steps: int,
                           edge_type: Optional[Tensor] = None) -> Tensor:
        """Predicts :obj:`[num_nodes, num_steps, num_features]` after the last
        observed frame over a graph :obj:`[num_edges, num_layers]`, by default
        the most probable one; with masses :obj:`data.mass` where known, and
        rates of each particle's own, where laws have them."""
        if edge_type is None:
            edge_type = self.predict(data)
        with _inference(self):
            edge_attr = self.weights(edge_type, data)
            decoder = self.seeing(data, edge_attr).decoder
            out = decoder.predict(self.scaling(data.x), data.edge_index,
                                  edge_attr, num_steps)
            return self.scaling.inverse(out)

    def weights(self, edge_type: Tensor, data: Data) -> Tensor:
        """The :obj:`edge_attr` of a graph, over masses where known."""
        terms = getattr(self.decoder.layer, 'terms', ())
        return per_mass(self.latent.encode_types(edge_type), data, terms)

    def seeing(self, data: Data, edge_attr: Tensor) -> 'RelationalAutoEncoder':
        """The model, or a copy whose laws know the rates of each particle's own
        that observed frames tell over a graph."""
        layer: Any = self.decoder.layer
        if 'own-rate' not in getattr(layer, 'terms', ()):
            return self
        out = copy.deepcopy(self)
        own: Any = out.decoder.layer
        with _inference(self):
            own.own = layer.own_rates(self.scaling(data.x), data.edge_index,
                                      edge_attr)
        return out


class NRI(RelationalAutoEncoder):
    r"""Neural relational inference: one layer-graph with an edge type for each
    combination of interactions, :math:`\prod_a K_a` in all.

    Args:
        num_edge_types: Number of types :math:`K_a` of each interaction.
        dropout: Dropout probability of the encoder's hidden layers.
        scaling: Units of the model, min-max by default.
        **kwargs: Arguments of :class:`CategoricalLatent`; its :obj:`prior` that
            of all combinations, or one for each interaction.
    """
    #: Options of :meth:`init_latent` that not all latent graphs have.
    latent_options: ClassVar[Sequence[str]] = ('drop_null', 'prior')

    def __init__(self, in_channels: int, num_steps: int,
                 num_edge_types: Sequence[int], hidden_channels: int = 256,
                 dropout: float = 0.0, scaling: Optional[Scaling] = None,
                 **kwargs: Any) -> None:
        latent = self.init_latent(num_edge_types, **kwargs)
        super().__init__(
            MLPEncoder(in_channels, num_steps, latent.num_logits,
                       hidden_channels, dropout), latent,
            RolloutDecoder(
                MultiplexConv(in_channels, in_channels, latent.num_channels,
                              hidden_channels)),
            MinMaxScaling(in_channels) if scaling is None else scaling)

    def init_latent(self, num_edge_types: Sequence[int], *,
                    prior: Optional[Sequence[Sequence[float]]] = None,
                    **kwargs: Any) -> Latent:
        sizes = check_edge_types(num_edge_types)
        if prior is not None and len(prior) == len(sizes):
            prior = check_prior(prior, sizes)
            prior = [[math.prod(p) for p in itertools.product(*prior)]]
        return CategoricalLatent([math.prod(sizes)], prior=prior, **kwargs)


class FNRI(NRI):
    r"""Factorised neural relational inference (section 2.1): one layer-graph
    per kind of interaction. Arguments as for :class:`NRI`."""
    def init_latent(self, num_edge_types: Sequence[int],
                    **kwargs: Any) -> Latent:
        return CategoricalLatent(num_edge_types, **kwargs)


class SFNRI(NRI):
    r"""fNRI with sigmoids instead of samples (section 2.2). Arguments as for
    :class:`NRI`, with those of :class:`SigmoidLatent`."""
    latent_options = ('noise', )

    def init_latent(self, num_edge_types: Sequence[int],
                    **kwargs: Any) -> Latent:
        return SigmoidLatent(num_edge_types, **kwargs)


#: Models by the names that runs and files of the research code go by.
MODELS: dict[str, type[NRI]] = {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}


def _check_finite(posterior: Sequence[Tensor]) -> None:
    # NaN, too, has an argmax: it must not become a graph.
    if not all(bool(q.isfinite().all()) for q in posterior):
        raise ValueError("What this model infers is not finite; check the "
                         "trajectories, their units and its weights.")


@contextmanager
def _inference(module: torch.nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training
