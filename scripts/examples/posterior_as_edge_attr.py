"""An encoder's posterior as the edge attributes of other layers.

    python scripts/examples/posterior_as_edge_attr.py \\
        --checkpoint runs/demo/best.ckpt

How probable each interaction of new systems is, by an encoder that has seen no
labels, goes to PyG's GATv2Conv and GINEConv as `edge_attr`. They learn from a
few labelled systems which particles carry a charge, without trajectories.
"""
import argparse
from typing import Optional

import torch
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.data import Batch
from torch_geometric.nn import GATv2Conv, GINEConv
from torch_geometric.nn.models import MLP
from torch_geometric.utils import scatter

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.transforms import SplitTrajectory


class Net(torch.nn.Module):
    """Attention and a sum over the same inferred graph."""
    def __init__(self, edge_dim: int, hidden: int = 32) -> None:
        super().__init__()
        self.conv1 = GATv2Conv(1, hidden, edge_dim=edge_dim)
        self.conv2 = GINEConv(MLP([hidden, hidden, hidden], norm=None),
                              edge_dim=edge_dim)
        self.lin = torch.nn.Linear(hidden, 2)

    def forward(self, data: Batch) -> Tensor:
        x = data.edge_attr.new_ones(data.num_nodes, 1)
        h = self.conv1(x, data.edge_index, data.edge_attr).relu()
        return self.lin(self.conv2(h, data.edge_index, data.edge_attr).relu())


def prepare(module: RelationalInference, root: str, split: str) -> Batch:
    """Systems with `edge_attr`, the probability of each interaction, and
    `charged`, what is to be learned."""
    dataset = ParticleSystems(
        root, 'springs_charges', split, num_systems=(200, 1, 500),
        transform=SplitTrajectory(module.config.num_observed))
    systems = next(iter(SystemLoader(dataset, len(dataset))))
    posterior = module.model.posterior(systems)
    systems.edge_attr = torch.cat([q[:, 1:] for q in posterior], dim=-1)
    systems.charged = scatter(systems.edge_label[:, 1], systems.edge_index[1],
                              dim_size=systems.num_nodes, reduce='max')
    return systems


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='of scripts/train.py, of springs and charges')
    parser.add_argument('--root', default='datasets', metavar='DIR')
    parser.add_argument('--num-steps', type=int, default=200)
    args = parser.parse_args(argv)
    seed_everything(0)
    module = load_checkpoint(args.checkpoint)
    train, test = (prepare(module, args.root, split)
                   for split in ('train', 'test'))
    net = Net(train.num_edge_features)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(args.num_steps):
        loss = torch.nn.functional.cross_entropy(net(train), train.charged)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (net(test).argmax(-1) == test.charged).double().mean()
    share = test.charged.double().mean()
    print(f'accuracy {right:.1%}, most common answer '
          f'{max(share, 1 - share):.1%}')


if __name__ == '__main__':
    main()
