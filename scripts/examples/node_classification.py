"""MultiplexConv in a GNN on a standard task: which part of a house is a node?

    python scripts/examples/node_classification.py

PyG's ExplainerDataset hangs 80 houses of five nodes on a random graph of 300;
nothing is downloaded. Nodes have no features: classes (the random graph, and
floor, middle and roof of a house) show in the edges alone, which are a
multiplex graph of two layers here, those within triangles and all others.
Prints the accuracy for nodes that were not trained on.
"""
import argparse
from typing import Optional

import torch
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.nn import GATv2Conv
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import to_dense_adj

from pyg_fnri.nn import MultiplexConv


class Net(torch.nn.Module):
    """Layers of ours, and one of PyG's over the same edge attributes."""
    def __init__(self, in_channels: int, num_classes: int,
                 edge_dim: int) -> None:
        super().__init__()
        self.conv1 = MultiplexConv(in_channels, 16, edge_dim,
                                   hidden_channels=16)
        self.conv2 = MultiplexConv(16, 16, edge_dim, hidden_channels=16)
        self.conv3 = GATv2Conv(16, num_classes, edge_dim=edge_dim)

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        h = self.conv1(x, edge_index, edge_attr).relu()
        h = self.conv2(h, edge_index, edge_attr).relu()
        return self.conv3(h, edge_index, edge_attr)


def make_graph() -> Data:
    """The graph, with a channel for each kind of edge, and a split."""
    data = ExplainerDataset(BAGraph(300, 5), 'house', num_motifs=80)[0]
    adj = to_dense_adj(data.edge_index)[0]
    sender, receiver = data.edge_index
    in_triangle = ((adj @ adj)[sender, receiver] > 0).long()
    edge_attr = torch.nn.functional.one_hot(in_triangle, 2).float()
    return RandomNodeSplit(num_val=0,
                           num_test=0.5)(Data(x=torch.ones(data.num_nodes, 1),
                                              edge_index=data.edge_index,
                                              edge_attr=edge_attr, y=data.y))


def train(data: Data, num_steps: int) -> Net:
    """Trains on the nodes of the training split."""
    model = Net(data.num_node_features,
                int(data.y.max()) + 1, data.num_edge_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(num_steps):
        out = model(data.x, data.edge_index, data.edge_attr)
        loss = torch.nn.functional.cross_entropy(out[data.train_mask],
                                                 data.y[data.train_mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--num-steps', type=int, default=200)
    args = parser.parse_args(argv)
    seed_everything(0)
    data = make_graph()
    model = train(data, args.num_steps)
    with torch.no_grad():
        out = model(data.x, data.edge_index, data.edge_attr).argmax(-1)
    right = (out == data.y)[data.test_mask].double().mean()
    common = data.y[data.test_mask].bincount().max() / data.test_mask.sum()
    print(f'accuracy {right:.1%}, most common class {common:.1%}')


if __name__ == '__main__':
    main()
