"""Infer the interaction graphs of your own trajectories.

    python scripts/infer.py --checkpoint runs/mine/best.ckpt --data my.csv \\
        --out runs/mine/graphs

Looks at the first frames of each system, as many as the model has been trained
to see; systems may have other numbers of particles than in training. Writes
into --out:

- edges.csv: system, sender, receiver, layer, type, probability of that type,
- graphs.graphml: the interactions of all systems in one file, each a part of
  its own, with the names of system and particle at the nodes,
- graph.png and heatmap.png: the graph of the first system, and how probable
  each interaction is,
- trajectories.png: predicted from the last frame looked at, over true ones,
  of the first systems, where frames remain.

Trajectories are read as they were in training, which the checkpoint remembers:
columns of the same names, velocities derived in the same way. Options such as
--position say otherwise. Of a folder of arrays as the research code of NRI and
fNRI has it, graphs of the test systems are inferred.

Layers and types are numbered as the model does, which was not told what they
are: layer 0 may be any kind of interaction. Where the recipe is quick, type 0
is no interaction.

Recordings of the same particles, one organism or one experiment repeated, have
one graph:

    python scripts/infer.py --checkpoint runs/mine/best.ckpt --data my.csv \\
        --shared --out runs/mine/graph

pools what all systems tell about each pair; with --refine, each is refined
first. edges.csv then has no column system, as its edges are those of all of
them. Systems count as independent observations. Windows of one recording are
not quite that, so that the probabilities are overconfident: what is wrong about
one window is wrong about the next one, too.
"""
import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import networkx as nx
import pandas as pd
import torch
from matplotlib.figure import Figure
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_fnri.convert import to_networkx, to_pandas
from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.inference import refine, shared_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.opening import (
    describe_files,
    frame_interval,
    open_dataset,
    remembered_reading,
)
from pyg_fnri.plot import plot_adjacency, plot_multiplex, plot_trajectories
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.training.arguments import positive
from pyg_fnri.training.reading_arguments import (
    add_reading_arguments,
    as_options,
    reading_arguments,
)
from pyg_fnri.writing import check_writable

RESULTS = ('edges.csv', 'graphs.graphml', 'graph.png', 'heatmap.png',
           'trajectories.png')
NUM_DRAWN = 4

Own = Union[TrajectoryTable, NRIFolder]


class Graph(NamedTuple):
    """Inferred types `[E, L]`, and the probability of each type, `[E, K]` for
    each layer."""
    edge_type: Tensor
    posterior: list[Tensor]


class Results(NamedTuple):
    """The edges of all systems, their graphs as parts of one, and the first
    systems as they are to be drawn."""
    table: pd.DataFrame
    whole: nx.MultiGraph
    first: list[tuple[Data, Graph]]


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by scripts/train.py or scripts/em.py')
    parser.add_argument(
        '--data', required=True, metavar='FILE',
        help='trajectories as for scripts/train.py, with the '
        'same features')
    parser.add_argument(
        '--edges', metavar='FILE',
        help='candidate edges, as for scripts/train.py [all '
        'pairs]; of these, those near enough, if the model was '
        'trained on such')
    parser.add_argument(
        '--window', type=positive, metavar='T',
        help='cut recordings into windows of so many frames, '
        'a system each [whole recordings]')
    parser.add_argument(
        '--stride', type=positive, metavar='T',
        help='frames from the start of one window to the next '
        '[as many as a window has]')
    add_reading_arguments(parser, again=True)
    parser.add_argument(
        '--refine', action='store_true',
        help='improve each graph by what the decoder makes of '
        'the same frames')
    parser.add_argument(
        '--shared', action='store_true',
        help='one graph for all systems, which must have the same particles: '
        'the pooled posterior, overconfident where they are windows of one '
        'recording [a graph each]')
    parser.add_argument('--out', required=True, metavar='DIR',
                        help='where results go; made if need be')
    parser.add_argument('--overwrite', action='store_true',
                        help='replace results in --out')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept [%(default)s]')
    args = parser.parse_args(argv)
    if args.stride is not None and args.window is None:
        parser.error('--stride says how far apart windows are; name their '
                     'length with --window')
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    start = time.monotonic()
    try:
        check_out(args)
        module = load_checkpoint(args.checkpoint)
        module.require('encoder', *['decoder'] * args.refine)
        dataset = open_systems(module, args)
        infer_them = infer_shared if args.shared else infer_each
        table, whole, first = infer_them(module, dataset, args.refine)
        save(args.out, table, whole, draw(module, dataset, first))
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(as_options(str(error)))
    print(f'{describe(module, dataset, args.shared)} in '
          f'{time.monotonic() - start:.1f} seconds')
    print_summary(table)
    if args.shared and args.window is not None:
        print('windows of one recording are not independent: these '
              'probabilities are overconfident')
    print(f'written into {args.out}: ' + ', '.join(
        name
        for name in RESULTS if os.path.exists(os.path.join(args.out, name))))


def check_out(args: argparse.Namespace) -> None:
    """Makes sure, before the work, that results can be written, and that none
    get lost."""
    there = [
        name for name in RESULTS if os.path.exists(os.path.join(args.out, name))
    ]
    if there and not args.overwrite:
        raise ValueError(f"'{args.out}' holds {there[0]} already; replace the "
                         f"results there by --overwrite, or name another "
                         f"directory with --out.")
    check_writable(args.out)


def open_systems(module: RelationalInference, args: argparse.Namespace) -> Own:
    """The user's trajectories, with candidate edges as in training.

    Raises:
        ValueError: If they are not of the kind that the model knows.
    """
    config = module.config
    data = describe_files(
        args.data, args.edges, num_observed=config.num_observed,
        window=args.window, stride=args.stride,
        reading=how_to_read(config.data, args), **{
            option: config.data[option]
            for option in ('neighbours', 'radius', 'directed')
            if option in config.data
        })
    dataset = open_dataset(data, args.root,
                           'test' if 'folder' in data['files'] else 'all')
    num_steps, num_features = dataset[0].x.shape[1:]
    if num_features != config.in_channels:
        raise ValueError(f"The model was trained on {config.in_channels} "
                         f"features of a particle, positions and velocities, "
                         f"but '{args.data}' has {num_features}.")
    if num_steps < config.num_observed:
        raise ValueError(f"The model looks at {config.num_observed} frames, "
                         f"but the systems in '{args.data}' have {num_steps}.")
    # Frames further apart look like faster particles, and nothing would fail.
    trained = config.data.get('time_step')
    if 'num_systems' in config.data:
        trained = 0.1
    found = frame_interval(data, dataset)
    if trained and found and abs(found - trained) > 0.05 * trained:
        raise ValueError(f"Frames of '{args.data}' are {found:g} apart, but "
                         f"those that the model was trained on {trained:g}; "
                         f"resample the trajectories.")
    return dataset


def how_to_read(trained: Mapping[str, Any],
                args: argparse.Namespace) -> dict[str, Any]:
    """As in training, unless told otherwise."""
    given = reading_arguments(args)
    remembered = remembered_reading(trained, args.data)
    if 'position' in given:  # Velocities are then those of others.
        remembered.pop('velocity', None)
    return {**remembered, **given}


def infer_each(module: RelationalInference, dataset: Own,
               refined: bool) -> Results:
    """A graph for each system."""
    parts: list[Data] = []
    posteriors: list[list[Tensor]] = []
    first: list[tuple[Data, Graph]] = []
    for batch in batches(module, dataset):
        graph = infer(module, batch, refined)
        first = first or take_apart(batch, graph)
        # Without the trajectories. PyG shifts what is called a batch, too.
        parts.append(
            Data(edge_index=batch.edge_index, edge_type=graph.edge_type,
                 system_batch=batch.batch, num_nodes=batch.num_nodes))
        posteriors.append(graph.posterior)
    joined = Batch.from_data_list(parts)
    joined.batch = joined.system_batch  # Of systems, not of batches of them.
    graph = Graph(joined.edge_type,
                  [torch.cat(layer) for layer in zip(*posteriors)])
    return Results(
        *convert(module, joined, graph, dataset.system_names,
                 dataset.particle_names), first)


def convert(
    module: RelationalInference,
    data: Data,
    graph: Graph,
    systems: Sequence[Any],
    particles: Sequence[Sequence[Any]],
) -> tuple[pd.DataFrame, nx.MultiGraph]:
    """The graphs as a table and as networkx has them."""
    names: dict[str, Any] = {
        'probability': graph.posterior,
        'systems': systems,
        'particles': particles,
    }
    return (to_pandas(data, graph.edge_type, **names),
            to_networkx(data, graph.edge_type,
                        undirected=module.model.latent.undirected, **names))


def infer_shared(module: RelationalInference, dataset: Own,
                 refined: bool) -> Results:
    """One graph for all systems.

    Raises:
        ValueError: If they have not all the same particles and candidate
            edges.
    """
    check_same_particles(dataset)
    graph = Graph(*shared_graph(module.model, batches(module, dataset), refined,
                                dataset.system_names))
    first = [
        split(module, dataset[i]) for i in range(min(NUM_DRAWN, len(dataset)))
    ]
    table, whole = convert(module, first[0], graph, ['all'],
                           dataset.particle_names[:1])
    return Results(table.drop(columns='system'), whole,
                   [(data, graph) for data in first])


def check_same_particles(dataset: Own) -> None:
    """Makes sure that all systems have the particles of the first one.

    Raises:
        ValueError: If one has not.
    """
    names, particles = dataset.system_names, dataset.particle_names
    for name, own in zip(names, particles):
        if own != particles[0]:
            odd = [p for p in own if p not in particles[0]]
            odd += [p for p in particles[0] if p not in own]
            raise ValueError(f"Systems that share a graph have the same "
                             f"particles, but {odd[0]!r} is in only one of "
                             f"the systems {names[0]!r} and {name!r}; leave "
                             f"out --shared to infer a graph for each.")


def batches(module: RelationalInference, dataset: Own) -> Iterator[Batch]:
    """All systems, as the model looks at them."""
    for batch in track(SystemLoader(dataset, 100), 'inferring', transient=True):
        yield split(module, batch)


def split(module: RelationalInference, data: Any) -> Any:
    """The systems with `x` observed and `y` from the last observed frame
    on."""
    observed = module.config.num_observed
    data.x, data.y = data.x[:, :observed], data.x[:, observed - 1:]
    return data


def infer(module: RelationalInference, batch: Data, refined: bool) -> Graph:
    """The graphs of a batch of systems."""
    if refined:
        return Graph(*refine(module.model, batch))
    return Graph(*module.model.infer(batch))


def take_apart(batch: Batch, graph: Graph) -> list[tuple[Data, Graph]]:
    """The first systems of a batch, and the graph of each."""
    out = []
    for i in range(min(NUM_DRAWN, batch.num_graphs)):
        begin, end = batch.ptr[i:i + 2].tolist()
        own = (batch.edge_index[1] >= begin) & (batch.edge_index[1] < end)
        data = Data(x=batch.x[begin:end], y=batch.y[begin:end],
                    edge_index=batch.edge_index[:, own] - begin)
        out.append(
            (data, Graph(graph.edge_type[own],
                         [q[own] for q in graph.posterior])))
    return out


def draw(module: RelationalInference, dataset: Own,
         first: list[tuple[Data, Graph]]) -> dict[str, Figure]:
    """The pictures, by the names of their files."""
    data, graph = first[0]
    out: dict[str, Figure] = {}
    if data.num_edges:
        chosen = torch.stack([
            q.gather(1, types.unsqueeze(1)).squeeze(1)
            for q, types in zip(graph.posterior, graph.edge_type.unbind(-1))
        ], dim=-1)
        out['graph.png'] = plot_multiplex(data.edge_index, graph.edge_type,
                                          probability=chosen.clamp(0, 1))
        out['heatmap.png'] = plot_adjacency(
            data.edge_index,
            torch.stack([1 - q[:, 0] for q in graph.posterior],
                        dim=-1).clamp(0,
                                      1), particles=dataset.particle_names[0],
            label='probability of a type other than 0')
    # As many frames as were looked at are as many as make a clear picture.
    num_steps = min(data.y.size(1) - 1, data.x.size(1))
    if (num_steps == 0 or data.x.size(2) < 4
            or 'decoder' not in module.trained):
        return out  # Nothing to compare or to predict, or no plane to draw in.
    paths = predict(module, first, num_steps)
    if all(bool(path.isfinite().all()) for path in paths):
        out['trajectories.png'] = plot_trajectories(
            paths, [d.y[:, :num_steps + 1] for d, _ in first],
            observed=[d.x for d, _ in first], titles=[
                f'system {name}' for name in dataset.system_names[:len(first)]
            ], unit='unit of the data')
    return out


def predict(module: RelationalInference, first: list[tuple[Data, Graph]],
            num_steps: int) -> list[Tensor]:
    """Where each system goes from its last observed frame, which leads."""
    batch = Batch.from_data_list([data for data, _ in first])
    edge_type = torch.cat([graph.edge_type for _, graph in first])
    steps = module.model.predict_trajectory(batch, num_steps, edge_type)
    path = torch.cat([batch.y[:, :1], steps], dim=1)
    return list(path.split(batch.ptr.diff().tolist()))


def save(out: str, table: pd.DataFrame, whole: nx.MultiGraph,
         pictures: dict[str, Figure]) -> None:
    """Writes all results, then moves them into their place."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        table.to_csv(os.path.join(folder, 'edges.csv'), index=False)
        nx.write_graphml(whole, os.path.join(folder, 'graphs.graphml'),
                         edge_id_from_attribute='id')
        for name, figure in pictures.items():
            figure.savefig(os.path.join(folder, name))
        for name in RESULTS:
            old, new = os.path.join(out, name), os.path.join(folder, name)
            if os.path.exists(new):
                os.replace(new, old)
            elif os.path.exists(old):
                os.remove(old)  # Of other systems, and replaced by nothing.


def describe(module: RelationalInference, dataset: Own, shared: bool) -> str:
    """How many systems there are, and how much of them was looked at."""
    number = f"{len(dataset)} system{'s' * (len(dataset) > 1)}"
    if dataset.split != 'all':
        number += f" of the split '{dataset.split}'"
    num_steps, observed = dataset[0].x.size(1), module.config.num_observed
    frames = f', the first {observed} of {num_steps} frames,' * (num_steps
                                                                 > observed)
    return f"{'one graph of ' * shared}{number}{frames}"


def print_summary(table: pd.DataFrame) -> None:
    """What was found, and how sure the model is of it."""
    for layer, rows in table.groupby('layer'):
        shares = rows['type'].value_counts(normalize=True).sort_index()
        print(f'layer {layer}: ' +
              ', '.join(f'type {kind} {share:.1%}'
                        for kind, share in shares.items()) +
              f' of the candidate edges; mean probability '
              f'{rows["probability"].mean():.2f}')


if __name__ == '__main__':
    main()
