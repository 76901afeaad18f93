"""PyG's transforms and DataLoader with our data sets and models.

    python scripts/examples/transforms.py

Candidate edges come from the two nearest neighbours of each particle, a
directed graph. ToUndirected adds the missing directions with the type of their
reverse (`reduce='max'`; by default, PyG would add up types), AddRandomWalkPE
features of each particle in that graph.
"""
import argparse
from typing import Optional

from torch_geometric import seed_everything
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddRandomWalkPE, Compose, ToUndirected

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.nn import FNRI
from pyg_fnri.transforms import NearestNeighbours, SplitTrajectory


def make_dataset(root: str) -> ParticleSystems:
    """Systems of ten particles, of whose pairs only the near ones may
    interact."""
    return ParticleSystems(
        root, 'springs_charges', num_systems=(64, 1, 1), num_particles=10,
        transform=Compose([
            NearestNeighbours(2, num_observed=49),
            ToUndirected(reduce='max'),
            AddRandomWalkPE(3, attr_name='walk'),
            SplitTrajectory(49),
        ]))


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', default='datasets', metavar='DIR')
    args = parser.parse_args(argv)
    seed_everything(0)
    dataset = make_dataset(args.root)
    model = FNRI(in_channels=4, num_steps=49, num_edge_types=[2, 2],
                 hidden_channels=16)
    model.scaling.fit(dataset.x)
    for batch in DataLoader(dataset, batch_size=32, shuffle=True):
        edge_type = model.predict(batch)
        future = model.predict_trajectory(batch, num_steps=10)
        print(f'{batch}\n  undirected: {batch.is_undirected()}, inferred types '
              f'{list(edge_type.shape)}, predicted {list(future.shape)}')


if __name__ == '__main__':
    main()
