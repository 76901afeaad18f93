import math

import pytest
import torch

from pyg_fnri.nn import NodeTerm, PairTerm, Term

OFFSET, VELOCITY = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0])


def vectors(name, first, second):
    return Term.known[name]().vectors(first, second)


@pytest.mark.parametrize('name, expected', [
    ('transverse', [[-0.8], [0.6]]),
    ('alignment', [[0.0], [2.0]]),
    ('drag', [[0.0, 0.0, 0.0], [2.0, 4.0, 8.0]]),
    ('turning', [[-2.0], [0.0]]),
    ('field', [[1, 0, 3, 4, 0, 0, 75], [0, 1, 0, 0, 3, 4, 100]]),
])
def test_vectors_of_terms(name, expected):
    out = vectors(name, OFFSET, VELOCITY)
    torch.testing.assert_close(out, torch.tensor(expected).to(out))


@pytest.mark.parametrize('name', ['transverse', 'alignment', 'drag', 'turning'])
def test_terms_turn_with_the_world_and_pairs_are_opposite(name):
    angle = 0.7
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)],
                         [math.sin(angle), math.cos(angle)]])
    out = vectors(name, OFFSET, VELOCITY)
    torch.testing.assert_close(vectors(name, turn @ OFFSET, turn @ VELOCITY),
                               turn @ out)
    torch.testing.assert_close(vectors(name, -OFFSET, -VELOCITY), -out)


@pytest.mark.parametrize('name', Term.known)
@pytest.mark.parametrize('num_dimensions', [1, 2, 3])
def test_terms_are_for_lines_planes_and_space(name, num_dimensions):
    term = Term.known[name]()
    if isinstance(term, (NodeTerm, PairTerm)):
        x = torch.zeros(5, 7, num_dimensions, requires_grad=True)
        out = term.vectors(x, x)
        assert out.size()[:3] == (5, 7, num_dimensions)
        if out.requires_grad:  # Some point nowhere on a line.
            out.sum().backward()
            assert x.grad.isfinite().all()
