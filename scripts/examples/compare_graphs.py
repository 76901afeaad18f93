"""Compare inferred graphs with the truth, once both are there.

    python scripts/examples/compare_graphs.py runs/example/graphs/edges.csv \\
        datasets/example_interactions.csv

Reads what scripts/infer.py has written and a table with the columns system,
sender, receiver, layer and type; pairs that it does not list do not interact.
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

EDGE = ['system', 'sender', 'receiver']


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
        unknown = true.index.difference(inferred.index)
        if len(unknown):
            raise ValueError(f"'{args.truth}' has interactions that are no "
                             f"candidate edges of '{args.inferred}', such as "
                             f"{dict(zip(EDGE, unknown[0]))}; are they of the "
                             f"same systems?")
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
    num_systems = inferred.index.get_level_values('system').nunique()
    print(f'{num_systems} systems, {len(inferred):,} edges, right in all '
          f'layers at once: {result.combined:.1%}')
    for name, share in zip(true, result.layers):
        print(f'  {name}: {share:.1%}')
    print(f'  relabelling: {result.relabelling}')


def types_by_layer(path: str) -> pd.DataFrame:
    """A row per edge, a column per layer."""
    table = pd.read_csv(path, dtype={name: str for name in EDGE})
    missing = {*EDGE, 'layer', 'type'} - {*table.columns}
    if missing:
        raise ValueError(f"'{path}' has no column {min(missing)!r}, but must "
                         f"have {', '.join(EDGE)}, layer and type.")
    try:
        wide = table.pivot(index=EDGE, columns='layer', values='type')
    except ValueError as error:
        raise ValueError(f"'{path}' names an edge twice in one layer; remove "
                         f"one of the rows.") from error
    return wide.fillna(0).astype('int64')


if __name__ == '__main__':
    main()
