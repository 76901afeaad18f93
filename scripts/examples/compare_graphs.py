"""Compare inferred graphs with the truth, once both are there.

    python scripts/examples/compare_graphs.py runs/example/graphs/edges.csv \\
        datasets/example_interactions.csv

The truth has the columns sender, receiver, type and, where there are several,
system and layer; pairs that it does not list do not interact. A table without
the column system is of all systems. Prints the strict accuracy: the share of
candidate edges with the right types in all layers at once, and in each, up to
one relabelling for all systems of the layers, and of the types other than 0.
"""
import argparse
import sys
from typing import Optional

import pandas as pd
import torch

from pyg_fnri.metrics import EdgeAccuracy

EDGE = ['system', 'sender', 'receiver']


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('inferred', help="pyg-fnri infer's edges.csv")
    parser.add_argument('truth', help='a table of the true interactions')
    args = parser.parse_args(argv)
    try:
        compare(read(args.inferred), read(args.truth))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


def read(path: str) -> pd.DataFrame:
    """A row for each edge, a column for each layer."""
    table = pd.read_csv(path, dtype={name: str for name in EDGE})
    if 'layer' not in table:
        table['layer'] = 0
    edge = [name for name in EDGE if name in table]
    # `pivot` refuses an edge that is there twice.
    return table.pivot(index=edge, columns='layer',
                       values='type').fillna(0).astype('int64')


def repeated(table: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """One graph for all systems is repeated for each of the other table."""
    if 'system' in table.index.names or 'system' not in other.index.names:
        return table
    systems = other.index.unique('system')
    return pd.concat({s: table for s in systems}, names=['system'])


def compare(inferred: pd.DataFrame, true: pd.DataFrame) -> None:
    """Prints how far two tables agree."""
    inferred, true = repeated(inferred, true), repeated(true, inferred)
    unknown = true.index.difference(inferred.index)
    if len(unknown):
        raise ValueError(f'The truth has {unknown[0]}, which is no candidate '
                         f'edge; are the tables of the same systems?')
    true = true.reindex(inferred.index, fill_value=0)
    # A layer in which nothing was found still has two types.
    sizes = [[max(2, 1 + types) for types in table.max()]
             for table in (true, inferred)]
    accuracy = EdgeAccuracy(*sizes, fixed_null=True)
    accuracy.update(torch.tensor(inferred.to_numpy()),
                    torch.tensor(true.to_numpy()))
    result = accuracy.compute()
    print(f'{len(inferred):,} edges, right in all layers at once: '
          f'{result.combined:.1%}')
    for name, share in zip(true, result.layers):
        print(f'  {name}: {share:.1%}')
    print(f'  relabelling: {result.relabelling}')


if __name__ == '__main__':
    main()
