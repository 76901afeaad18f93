# %% [markdown]
# # A layer in your own GNN
#
# `MultiplexConv` is a layer like those of PyG. An inferred graph is an
# `edge_attr` like any other.
#
# ## The layer
#
# It takes `(x, edge_index, edge_attr)` and gives node features, with a time axis
# or without one. `edge_attr` has a weight for each edge and channel; each channel
# has a message network of its own. Combine it with any other layer.

# %%
import torch
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.nn import MultiplexConv
from torch_geometric.nn import GATv2Conv, GINEConv
from torch_geometric.nn.models import MLP

NUM_SYSTEMS = (200, 32, 32)  # (64, 32, 32) in the tests
dataset = ParticleSystems('datasets', num_systems=NUM_SYSTEMS)
data = dataset[0]
edge_attr = torch.rand(data.num_edges, 4)  # such as a posterior
conv1 = MultiplexConv(4, 32, edge_dim=4)
conv2 = GATv2Conv(32, 32, edge_dim=4)
conv3 = GINEConv(MLP([32, 7]), edge_dim=4)
h = conv1(data.x, data.edge_index, edge_attr)  # [5, 99, 32]
z = conv2(h.mean(dim=1), data.edge_index, edge_attr)  # [5, 32]
print(conv3(z, data.edge_index, edge_attr).shape)

# %% [markdown]
# ## Train it
#
# Here it learns how springs and charges change velocities, from the true graph
# and all frames at once.

# %%
from torch_geometric import seed_everything
from torch_geometric.loader import DataLoader

NUM_EPOCHS = 10  # 2 in the tests
seed_everything(0)
model = MultiplexConv(4, 2, edge_dim=2, hidden_channels=32)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
unit = dataset.x.diff(dim=1)[..., 2:].std()
for epoch in range(NUM_EPOCHS):
    for batch in DataLoader(dataset, batch_size=16, shuffle=True):
        out = model(batch.x[:, :-1], batch.edge_index, batch.edge_label.float())
        change = batch.x.diff(dim=1)[..., 2:] / unit
        # A robust loss: close encounters would outweigh all else.
        loss = torch.nn.functional.huber_loss(out, change)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()

# %% [markdown]
# ## Explain it
#
# PyG's explainer takes the layer as it is. The weight of an edge says how much
# it matters to particle 0. Edges without an interaction have none.

# %%
from torch_geometric.explain import Explainer, GNNExplainer

data = next(d for d in dataset if 2 <= d.edge_label[:4].any(-1).sum() <= 3)
explainer = Explainer(
    model, GNNExplainer(epochs=100, lr=0.05), explanation_type='model',
    edge_mask_type='object',
    model_config=dict(mode='regression', task_level='node', return_type='raw'))
weight = explainer(data.x[:, 0], data.edge_index,
                   edge_attr=data.edge_label.float(), index=0).edge_mask
for edge in range(4):  # Edges are sorted by receiver.
    spring, charge = data.edge_label[edge].tolist()
    print(f'from {data.edge_index[0, edge]} to 0: weight {weight[edge]:.2f}, '
          f'spring {spring}, charge {charge}')

# %% [markdown]
# ## Transforms and data modules
#
# Data sets are PyG's `InMemoryDataset`, so PyG's transforms and Lightning data
# modules take them.

# %%
from pyg_fnri.transforms import NearestNeighbours
from torch_geometric.data.lightning import LightningDataset
from torch_geometric.transforms import Compose, ToUndirected

# 'max', as the default would add up the labels of both directions.
near = Compose([NearestNeighbours(2), ToUndirected(reduce='max')])(data)
datamodule = LightningDataset(dataset, batch_size=16)
print(near)
