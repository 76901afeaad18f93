"""A layer of ours under PyG's explainer: which edges does a particle need?

    python scripts/examples/explain.py

A MultiplexConv learns how springs and charges change velocities. GNNExplainer
weighs the edges for one particle: one without an interaction has no weight.
"""
import argparse
from typing import Optional

import torch
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.loader import DataLoader

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.nn import MultiplexConv


def train_conv(dataset: ParticleSystems, num_epochs: int) -> MultiplexConv:
    """Learns the change of velocities in an interval, in units of its
    standard deviation, from all frames at once: `x` is `[N, T, F]`."""
    model = MultiplexConv(4, 2, edge_dim=2, hidden_channels=32)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    unit = dataset.x.diff(dim=1)[..., 2:].std()
    for _ in range(num_epochs):
        for batch in DataLoader(dataset, batch_size=16, shuffle=True):
            out = model(batch.x[:, :-1], batch.edge_index,
                        batch.edge_label.float())
            change = batch.x.diff(dim=1)[..., 2:] / unit
            # Robust: close encounters would drown all else.
            loss = torch.nn.functional.huber_loss(out, change)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def explain(model: MultiplexConv, data: Data, particle: int) -> Tensor:
    """The weight of each edge for one particle in the first frame, in which
    `x` is `[N, F]`."""
    explainer = Explainer(
        model, GNNExplainer(epochs=100, lr=0.05), explanation_type='model',
        edge_mask_type='object', model_config=dict(mode='regression',
                                                   task_level='node',
                                                   return_type='raw'))
    return explainer(data.x[:, 0], data.edge_index,
                     edge_attr=data.edge_label.float(),
                     index=particle).edge_mask


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', default='datasets', metavar='DIR')
    parser.add_argument('--num-epochs', type=int, default=10)
    args = parser.parse_args(argv)
    seed_everything(0)
    dataset = ParticleSystems(args.root, num_systems=(200, 1, 1))
    model = train_conv(dataset, args.num_epochs)
    # A system in which some pairs interact, and others do not.
    data = next(d for d in dataset if 2 <= d.edge_label[:4].any(-1).sum() <= 3)
    weight = explain(model, data, particle=0)
    for edge in range(4):  # Edges are sorted by receiver.
        spring, charge = data.edge_label[edge].tolist()
        print(f'from {data.edge_index[0, edge]} to 0: weight '
              f'{weight[edge]:.2f}, spring {spring}, charge {charge}')


if __name__ == '__main__':
    main()
