"""GraphML files of many systems, which networkx takes long to write."""
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

#: What types of Python are called in GraphML; any other is a string.
KINDS = {bool: 'boolean', int: 'long', float: 'double'}

Keys = dict[tuple[str, str, str], str]


def write_graphml(graphs: Sequence[nx.MultiGraph], path: str) -> None:
    """Writes graphs as parts of one, which `networkx.read_graphml` reads as
    the same as `networkx.write_graphml` makes of their disjoint union. The
    nodes are numbered on from graph to graph, and so are the edges, whose
    numbers are their `id` and take the place of the attribute of that name.

    Args:
        graphs (sequence of networkx.MultiGraph): At least one, all directed
            or none, with attributes of plain types, as of
            :func:`~pyg_fnri.convert.to_networkx`.
        path (str): The file.

    Raises:
        ValueError: If there are no graphs, or some are directed and others
            are not.
        OSError: If the file cannot be written.
    """
    directed = {graph.is_directed() for graph in graphs}
    if len(directed) != 1:
        raise ValueError(f'graphs must be at least one, all directed or none, '
                         f'but are {len(graphs)}, of which '
                         f'{sum(g.is_directed() for g in graphs)} are '
                         f'directed.')
    keys: Keys = {}
    body = list(_body(graphs, keys))  # Only now all keys are known.
    direction = 'directed' if directed.pop() else 'undirected'
    with open(path, 'w', encoding='utf-8') as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n'
                   '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for (scope, name, kind), key in keys.items():
            file.write(f'<key id="{key}" for="{scope}" '
                       f'attr.name={quoteattr(name)} attr.type="{kind}"/>\n')
        file.write(f'<graph edgedefault="{direction}">\n')
        file.writelines(body)
        file.write('</graph>\n</graphml>\n')


def _body(graphs: Iterable[nx.MultiGraph], keys: Keys) -> Iterator[str]:
    """A line for each node and each edge."""
    start = number = 0
    for graph in graphs:
        place = {node: start + k for k, node in enumerate(graph)}
        for node, attributes in graph.nodes(data=True):
            yield (f'<node id="{place[node]}">'
                   f'{_values("node", attributes, keys)}</node>\n')
        for sender, receiver, attributes in graph.edges(data=True):
            own = {k: v for k, v in attributes.items() if k != 'id'}
            yield (f'<edge source="{place[sender]}" '
                   f'target="{place[receiver]}" id="{number}">'
                   f'{_values("edge", own, keys)}</edge>\n')
            number += 1
        start += len(place)


def _values(scope: str, attributes: Mapping[str, Any], keys: Keys) -> str:
    """Attributes as elements, each by the key of its name and type."""
    out = []
    for name, value in attributes.items():
        kind = KINDS.get(type(value), 'string')
        key = keys.setdefault((scope, name, kind), f'd{len(keys)}')
        out.append(f'<data key="{key}">{escape(str(value))}</data>')
    return ''.join(out)
