import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.laws.missing_terms import TERMS, seen_from_laws


@pytest.fixture
def frames(make_model):
    """Two particles at rest but for the first one's velocity along x, the
    second one 2 m to the right; a spring between them."""
    x = torch.zeros(2, 3, 4)
    x[1, :, 0], x[0, :, 2] = 2.0, 3.0
    data = Batch.from_data_list([from_trajectory(x)])
    edge_type = torch.tensor([[1, 0], [1, 0]])
    model = make_model(edge_type)
    model.decoder.layer.scale.fill_(0.5)
    return seen_from_laws(model, model.decoder.layer, data, x, edge_type)


def test_laws_explain_and_miss_what_happens(frames):
    change = frames.transitions.change[..., 2:] / 0.5
    torch.testing.assert_close(frames.explained + frames.missed, change)
    # A spring of 0.1 N/m, for 0.1 s, 2 m long but for the cubic path.
    expected = torch.tensor([[0.04, 0.0], [-0.04, 0.0]]).unsqueeze(1)
    torch.testing.assert_close(frames.explained,
                               expected.expand_as(frames.explained), atol=1e-3,
                               rtol=0)


@pytest.mark.parametrize('name, first, second', [
    ('velocity', [[3.0, 9.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ('turning', [[0.0], [3.0]], [[0.0], [0.0]]),
    ('field', [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]], [[1, 0, 2, 0, 0, 0],
                                                         [0, 1, 0, 2, 0, 0]]),
])
def test_terms_of_particles(frames, name, first, second):
    term = TERMS[name](frames)
    expected = torch.tensor([first, second], dtype=torch.float).unsqueeze(1)
    torch.testing.assert_close(term, expected.expand_as(term))


def test_terms_of_pairs_are_opposite_and_of_their_channel(frames):
    relative = TERMS['relative velocity'](frames)[:, 0]  # [N, D, P]
    expected = torch.tensor([[3.0, 1.5, 0.0, 0.0], [0.0] * 4])
    torch.testing.assert_close(relative[0], expected)
    across = TERMS['transverse'](frames)[:, 0]
    expected = torch.tensor([[0.0] * 6, [-1.0, -2.0, -0.5, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(across[0], expected)
    for term in (relative, across):
        torch.testing.assert_close(term[0], -term[1])
