"""MultiplexConv in a GNN on a standard task: which part of a house is a node?

    python scripts/examples/node_classification.py

PyG's ExplainerDataset hangs 80 houses of five nodes on a random graph. Nodes
have no features: classes (random graph; floor, middle and roof of a house) show
in the edges alone, a multiplex graph of those within triangles and all others.
Prints the accuracy for nodes that were not trained on.
"""
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
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = MultiplexConv(1, 16, edge_dim=2, hidden_channels=16)
        self.conv2 = MultiplexConv(16, 16, edge_dim=2, hidden_channels=16)
        self.conv3 = GATv2Conv(16, num_classes, edge_dim=2)

    def forward(self, data: Data) -> Tensor:
        h = self.conv1(data.x, data.edge_index, data.edge_attr).relu()
        h = self.conv2(h, data.edge_index, data.edge_attr).relu()
        return self.conv3(h, data.edge_index, data.edge_attr)


def make_graph() -> Data:
    """The graph, with a channel for each kind of edge, and a split."""
    data = ExplainerDataset(BAGraph(300, 5), 'house', num_motifs=80)[0]
    adj = to_dense_adj(data.edge_index)[0]
    sender, receiver = data.edge_index
    in_triangle = ((adj @ adj)[sender, receiver] > 0).long()
    graph = Data(x=torch.ones(data.num_nodes, 1), edge_index=data.edge_index,
                 edge_attr=torch.nn.functional.one_hot(in_triangle,
                                                       2).float(), y=data.y)
    return RandomNodeSplit(num_val=0, num_test=0.5)(graph)


def main() -> None:
    seed_everything(0)
    data = make_graph()
    model = Net(int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train, test = data.train_mask, data.test_mask
    for _ in range(200):
        loss = torch.nn.functional.cross_entropy(
            model(data)[train], data.y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (model(data).argmax(-1) == data.y)[test].double().mean()
    common = data.y[test].bincount().max() / test.sum()
    print(f'accuracy {right:.1%}, most common class {common:.1%}')


if __name__ == '__main__':
    main()
