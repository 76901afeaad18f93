"""An encoder's posterior as the edge attributes of other layers.

    python scripts/examples/posterior_as_edge_attr.py \\
        --checkpoint runs/demo/best.ckpt

A trained encoder, which has seen no labels, infers the interaction graphs of
new systems. How probable each interaction is goes to PyG's GATv2Conv and
GINEConv as `edge_attr`. With a few labelled systems they learn which particles
carry a charge; the trajectories themselves they do not see. Prints the
accuracy for other systems, beside that of the most common answer.
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
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.training import load_checkpoint
from pyg_fnri.transforms import SplitTrajectory


class Net(torch.nn.Module):
    """Attention and a sum over the same inferred graph."""
    def __init__(self, edge_dim: int, hidden: int = 32) -> None:
        super().__init__()
        self.conv1 = GATv2Conv(1, hidden, edge_dim=edge_dim)
        self.conv2 = GINEConv(MLP([hidden, hidden, hidden], norm=None),
                              edge_dim=edge_dim)
        self.lin = torch.nn.Linear(hidden, 2)

    def forward(self, edge_index: Tensor, edge_attr: Tensor,
                num_nodes: int) -> Tensor:
        x = edge_attr.new_ones(num_nodes, 1)
        h = self.conv1(x, edge_index, edge_attr).relu()
        return self.lin(self.conv2(h, edge_index, edge_attr).relu())


def open_split(root: str, split: str, num_observed: int) -> Batch:
    """Systems of springs and charges, all in one batch."""
    dataset = ParticleSystems(root, 'springs_charges', split,
                              num_systems=(200, 1, 500),
                              transform=SplitTrajectory(num_observed))
    return next(iter(SystemLoader(dataset, len(dataset))))


def prepare(model: RelationalAutoEncoder, systems: Batch) -> Batch:
    """With `edge_attr`, the probability of each interaction, and `charged`,
    what is to be learned."""
    systems.edge_attr = torch.cat([q[:, 1:] for q in model.posterior(systems)],
                                  dim=-1)
    charge = systems.edge_label[:, 1]
    systems.charged = scatter(charge, systems.edge_index[1], 0,
                              systems.num_nodes, reduce='max')
    return systems


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--checkpoint', required=True, metavar='FILE',
        help='written by scripts/train.py, of springs and '
        'charges')
    parser.add_argument('--root', default='datasets', metavar='DIR')
    parser.add_argument('--num-steps', type=int, default=200)
    args = parser.parse_args(argv)
    seed_everything(0)
    module = load_checkpoint(args.checkpoint)
    train, test = (prepare(
        module.model, open_split(args.root, split, module.config.num_observed))
                   for split in ('train', 'test'))
    net = Net(train.num_edge_features)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(args.num_steps):
        out = net(train.edge_index, train.edge_attr, train.num_nodes)
        loss = torch.nn.functional.cross_entropy(out, train.charged)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = net(test.edge_index, test.edge_attr, test.num_nodes).argmax(-1)
    right = (out == test.charged).double().mean()
    share = test.charged.double().mean()
    print(f'accuracy {right:.1%}, most common answer '
          f'{max(share, 1 - share):.1%}')


if __name__ == '__main__':
    main()
