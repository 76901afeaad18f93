"""Compare inferred graphs with the truth, once both are there.

    python scripts/examples/compare_graphs.py runs/example/graphs/edges.csv \\
        datasets/example_interactions.csv

Reads what scripts/infer.py has written and a table with the columns sender,
receiver, type and, where there are several, system and layer; pairs that it
does not list do not interact. A truth without the column system is that of all
systems. With --shared, scripts/infer.py writes one graph for all systems,
without that column: the truth must then be one for all of them, too.

Prints the strict accuracy: the share of the candidate edges whose types are
right in all layers at once, and in each, up to one relabelling for all
systems of the layers, and of the types other than 0.
"""
import argparse
import sys
from typing import Optional

import pandas as pd
import torch

from pyg_fnri.metrics import EdgeAccuracy

PAIR = ['sender', 'receiver']
EDGE = ['system', *PAIR]


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('inferred', help="scripts/infer.py's edges.csv")
    parser.add_argument('truth', help='a table of the true interactions')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    try:
        inferred, true = (types_by_layer(path)
                          for path in (args.inferred, args.truth))
        shared = 'system' not in inferred.index.names
        if shared:
            true = one_for_all(true, args.truth)
        elif 'system' not in true.index.names:
            true = repeat(true, inferred.index)
        unknown = true.index.difference(inferred.index)
        if len(unknown):
            raise ValueError(f"'{args.truth}' has interactions that are no "
                             f"candidate edges of '{args.inferred}', such as "
                             f"{dict(zip(true.index.names, unknown[0]))}; are "
                             f"they of the same systems?")
        true = true.reindex(inferred.index, fill_value=0)
        # A layer in which nothing was found still has two types.
        num_true, num_inferred = ([
            max(2, 1 + int(types.max())) for _, types in table.items()
        ] for table in (true, inferred))
        accuracy = EdgeAccuracy(num_true, num_inferred, fixed_null=True)
        accuracy.update(torch.tensor(inferred.to_numpy()),
                        torch.tensor(true.to_numpy()))
        result = accuracy.compute()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    of = 'one graph' if shared else (
        f"{inferred.index.get_level_values('system').nunique()} systems")
    print(f'{of}, {len(inferred):,} edges, right in all layers at once: '
          f'{result.combined:.1%}')
    for name, share in zip(true, result.layers):
        print(f'  {name}: {share:.1%}')
    print(f'  relabelling: {result.relabelling}')


def types_by_layer(path: str) -> pd.DataFrame:
    """A row per edge, a column per layer."""
    table = pd.read_csv(path, dtype={name: str for name in EDGE})
    missing = {*PAIR, 'type'} - {*table.columns}
    if missing:
        raise ValueError(f"'{path}' has no column {min(missing)!r}, but must "
                         f"have {', '.join(PAIR)} and type.")
    if 'layer' not in table:
        table['layer'] = 0
    edge = [name for name in EDGE if name in table]
    try:
        wide = table.pivot(index=edge, columns='layer', values='type')
    except ValueError as error:
        raise ValueError(f"'{path}' names an edge twice in one layer; remove "
                         f"one of the rows.") from error
    return wide.fillna(0).astype('int64')


def one_for_all(true: pd.DataFrame, path: str) -> pd.DataFrame:
    """The truth that all systems have in common, by sender and receiver.

    Raises:
        ValueError: If they differ.
    """
    if 'system' not in true.index.names:
        return true
    # What a system does not list is of type 0, as in any other.
    systems = {
        name: of.droplevel('system')
        for name, of in true.groupby(level='system')
    }
    first, *others = systems
    for other in others:
        ours, theirs = systems[first].align(systems[other], fill_value=0)
        differs = (ours != theirs).any(axis=1)
        if differs.any():
            raise ValueError(
                f"One graph was inferred for all systems, but in '{path}' "
                f"systems {first!r} and {other!r} differ, such as in "
                f"{dict(zip(PAIR, differs.idxmax()))}; infer a graph for "
                f"each, without --shared.")
    return systems[first]


def repeat(true: pd.DataFrame, edges: pd.MultiIndex) -> pd.DataFrame:
    """The truth of all systems, for each of them."""
    systems = edges.get_level_values('system').unique()
    return pd.concat({name: true for name in systems}, names=['system'])


if __name__ == '__main__':
    main()
