"""Laws and graphs in the order that an encoder has them in."""
from itertools import product

import torch

from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.laws.law_fit import State
from pyg_fnri.metrics import assign

#: Steps in a nat: of integers, sums are exact, and orders that are equally
#: good come out so.
RESOLUTION = 2**20


def align(search: GraphSearch, state: State) -> State:
    """Laws and graphs in the order of layers, and of types within a layer,
    that agrees best with the encoder's posterior; of equally good ones, the
    first.

    Layers of equally many types may change places, and so may the types of a
    layer that have a channel. The posterior is a product over layers, so that
    how well one layer found fits in the place of another does not depend on
    the rest: both are assignment problems, of types and then of layers.

    Args:
        search: Knows the posterior.
        state: Laws and graphs in any order.
    """
    found, channels = search.types[state.choice], _channels(search)
    fits: dict[tuple[int, int], int] = {}
    meanings: dict[tuple[int, int], list[int]] = {}
    for old, new in product(range(len(channels)), repeat=2):
        kinds = [[len(own) for own in channels[a]] for a in (old, new)]
        if sorted(kinds[0]) == sorted(kinds[1]):
            one_hot = torch.nn.functional.one_hot(found[:, old], len(kinds[0]))
            log_q = search.log_posterior[new].double() * RESOLUTION
            score = one_hot.double().t() @ log_q.round()
            # The null type stays what it is, where it has no channel.
            allowed = {
                (k, m): int(score[k, m])
                for k, m in product(range(len(score)), repeat=2)
                if kinds[0][k] == kinds[1][m]
            }
            meanings[old, new] = _assignment(allowed)
            fits[old, new] = sum(allowed[k, m]
                                 for m, k in enumerate(meanings[old, new]))
    order = list(range(search.options.size(1)))
    types = torch.empty_like(search.types)
    for new, old in enumerate(_assignment(fits)):
        meaning = meanings[old, new]  # Of each new type, the one found.
        for own, former in zip(channels[new], meaning):
            for channel, source in zip(own, channels[old][former]):
                order[channel] = source
        renamed = torch.tensor(meaning, device=types.device).argsort()
        types[:, new] = renamed[search.types[:, old]]
    option = (types.unsqueeze(1) == search.types).all(-1).long().argmax(-1)
    if not torch.equal(search.options[option], search.options[:, order]):
        return state  # A latent graph whose types are no channels.
    return State(state.laws[order], option[state.choice])


def _channels(search: GraphSearch) -> list[list[list[int]]]:
    """The channels of each type of each layer: those that all options with
    it have."""
    out = []
    for layer, log_q in enumerate(search.log_posterior):
        shared = [
            search.options[search.types[:, layer] == k].amin(0)
            for k in range(log_q.size(1))
        ]
        out.append([part.nonzero().flatten().tolist() for part in shared])
    return out


def _assignment(weight: dict[tuple[int, int], int]) -> list[int]:
    """The row of each column, each row once, of the highest total weight; of
    equal ones, the first in lexicographic order.

    Args:
        weight: Of rows and columns that may be joined.
    """
    size = 1 + max(column for _, column in weight)
    # Python's integers keep the two criteria apart, whatever their size.
    found = assign({
        (row, column):
        value * size**size - row * size**(size - 1 - column)
        for (row, column), value in weight.items()
    })
    return sorted(found, key=found.__getitem__)
