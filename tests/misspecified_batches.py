"""A few systems outside the assumptions of force laws, for tests."""
from dataclasses import replace
from functools import cache

from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.transforms import SplitTrajectory


@cache
def batches(system, num_systems=32):
    """Systems to fit laws to, and others; coarser steps, to be fast."""
    system = replace(system, step_size=1e-2, sample_every=10, num_steps=1_000)
    graphs = system.draw_edge_types(1, 2 * num_systems, 5)
    systems = [
        SplitTrajectory(49)(from_trajectory(*pair))
        for pair in zip(system.simulate(graphs, 1), graphs)
    ]
    return (Batch.from_data_list(systems[:num_systems]),
            Batch.from_data_list(systems[num_systems:]))
