"""An encoder, a latent graph and a decoder put together."""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.decoder import Decoder
from pyg_fnri.nn.latent import Latent
from pyg_fnri.nn.masses import per_mass
from pyg_fnri.nn.scaling import Scaling


class RelationalAutoEncoder(torch.nn.Module):
    r"""Infers the interaction graph of a system from its trajectories and
    predicts how it goes on (section 1.1 of the paper).

    All methods take and give physical units; :obj:`scaling` maps them to
    those that encoder and decoder work in. No method keeps a state.

    Args:
        encoder (torch.nn.Module): Called as :obj:`encoder(x, edge_index)`,
            gives :obj:`[num_edges, latent.num_logits]`.
        latent (Latent): What the logits mean.
        decoder (Decoder): Predicts trajectories over
            :obj:`latent.num_channels` channels.
        scaling (Scaling): Units of the model, fitted on the training split.
    """
    def __init__(
        self,
        encoder: torch.nn.Module,
        latent: Latent,
        decoder: Decoder,
        scaling: Scaling,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.latent = latent
        self.decoder = decoder
        self.scaling = scaling

    def reset_parameters(self) -> None:
        """Draws new weights for encoder and decoder."""
        reset(self.encoder)
        reset(self.decoder)

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits :obj:`[num_edges, num_logits]` from observed trajectories
        :obj:`[num_nodes, num_steps, num_features]`."""
        logits = self.encoder(self.scaling(x), edge_index)
        return self.latent.tie(logits, edge_index)

    def decode(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        pred_steps: int = 1,
    ) -> Tensor:
        """Predicts frames 1, ..., T - 1 of :obj:`x`, looking at the true state
        every :obj:`pred_steps` steps; see :meth:`Decoder.forward`."""
        out = self.decoder(self.scaling(x), edge_index, edge_attr, pred_steps)
        return self.scaling.inverse(out)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        y: Optional[Tensor] = None,
        pred_steps: int = 1,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
    ) -> tuple[Tensor, Tensor]:
        """Infers a graph from :obj:`x` and predicts along :obj:`y` with it.

        Args:
            x: Observed trajectories, :obj:`[num_nodes, num_steps, F]`.
            edge_index: Candidate edges, :obj:`[2, num_edges]`.
            y: Trajectories to predict, :obj:`[num_nodes, T, F]`; those
                observed by default.
            pred_steps: Steps between two looks at the true state.
            tau: Temperature of the sample.
            hard: If set, samples are one-hot.
            generator: Source of the sample's noise.

        Returns:
            The logits :obj:`[num_edges, num_logits]` and the predictions
            :obj:`[num_nodes, T - 1, F]` of frames 1, ..., T - 1 of :obj:`y`.

        Raises:
            ValueError: If a shape does not fit.
        """
        if y is not None and y.size(0) != x.size(0):
            raise ValueError(
                f"Expected the same particles in x and y, but x has "
                f"{x.size(0)} of them and y has {y.size(0)}.")
        logits = self.encode(x, edge_index)
        edge_attr = self.latent.sample(logits, tau, hard, generator, edge_index)
        y = x if y is None else y
        return logits, self.decode(y, edge_index, edge_attr, pred_steps)

    def posterior(self, data: Data) -> list[Tensor]:
        """Probabilities :obj:`[num_edges, K_a]` of each layer-graph's types,
        from the observed trajectories of a :obj:`Data` or :obj:`Batch`.

        Raises:
            TypeError: If the trajectories are of another dtype.
            ValueError: If trajectories or edges are missing, a shape does not
                fit or a number is not finite.
        """
        return self.latent.posterior(self._logits(data))

    def predict(self, data: Data) -> Tensor:
        """The most probable graph, :obj:`[num_edges, num_layers]` int64, from
        the observed trajectories of a :obj:`Data` or :obj:`Batch`.

        Raises:
            As :meth:`posterior`.
        """
        return self.latent.predict(self._logits(data))

    def infer(self, data: Data) -> tuple[Tensor, list[Tensor]]:
        """What :meth:`predict` and :meth:`posterior` give, in one pass of the
        encoder.

        Raises:
            As :meth:`posterior`.
        """
        logits = self._logits(data)
        return self.latent.predict(logits), self.latent.posterior(logits)

    def predict_trajectory(
        self,
        data: Data,
        num_steps: int,
        edge_type: Optional[Tensor] = None,
    ) -> Tensor:
        """Predicts how a system goes on after its last observed frame.

        Args:
            data: Observed trajectories, a :obj:`Data` or :obj:`Batch`; with
                masses :obj:`mass` where they are known.
            num_steps: Number of frames to predict.
            edge_type: The graph, :obj:`[num_edges, num_layers]`; the most
                probable one by default.

        Returns:
            Predictions in physical units, :obj:`[num_nodes, num_steps, F]`.

        Raises:
            As :meth:`posterior`, and as :func:`~pyg_fnri.nn.known_masses`.
        """
        x = self._observed(data)
        if edge_type is None:
            edge_type = self.predict(data)
        with _inference(self):
            edge_attr = self.latent.encode_types(edge_type)
            edge_attr = per_mass(edge_attr, data)
            out = self.decoder.predict(self.scaling(x), data.edge_index,
                                       edge_attr, num_steps)
            return self.scaling.inverse(out)

    def _logits(self, data: Data) -> Tensor:
        with _inference(self):
            logits = self.encode(self._observed(data), data.edge_index)
        if not bool(logits.isfinite().all()):
            # NaN, too, has an argmax: it must not become a graph.
            raise ValueError("The logits of this model are not finite; check "
                             "its weights (did training diverge?) and that "
                             "the trajectories are in its units.")
        return logits

    def _observed(self, data: Data) -> Tensor:
        for name in ('x', 'edge_index'):
            if data.get(name) is None:
                raise ValueError(
                    f"Expected a system with trajectories x and candidate "
                    f"edges edge_index, but it has no {name}; make systems of "
                    f"arrays with `pyg_fnri.data.from_trajectory`.")
        x, dtype = data.x, self.scaling.offset.dtype
        if x.dtype != dtype:
            raise TypeError(f"Expected trajectories x of {dtype}, as the model "
                            f"is, but got {x.dtype}; convert one of them.")
        if x.dim() != 3 or x.size(1) == 0:
            raise ValueError(
                f"Expected trajectories x of shape [num_nodes, num_steps, "
                f"num_features], but got {list(x.size())}.")
        if not bool(x.isfinite().all()):
            raise ValueError("Expected finite trajectories x, but some of "
                             "their values are NaN or infinite.")
        return x


@contextmanager
def _inference(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, and the old modes afterwards, which
    may differ between parts of a model."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training
