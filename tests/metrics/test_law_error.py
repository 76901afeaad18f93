import math

import numpy as np
import pytest
import torch

from pyg_fnri.metrics import relative_law_error
from pyg_fnri.metrics.law_error import supported_distances

DISTANCE = np.linspace(0.5, 4., 701)
TRUE = np.stack([-0.1 * DISTANCE, 0.2 / DISTANCE**2])
SEEN = np.linspace(1., 3., 41)


def test_an_error_of_a_hundredth_is_one_percent():
    scale = np.array([[1.01], [0.9]])
    error = relative_law_error(DISTANCE, scale * TRUE, TRUE, SEEN)
    assert error == pytest.approx([0.01, 0.1])


def test_distances_count_as_often_as_they_were_seen():
    distance, true = [1., 2., 3.], [[1., 2., 4.]]
    learned = [[1.5, 2., 3.]]  # off by 1/2, 0 and 1
    error = relative_law_error(distance, learned, true, [1., 1., 1., 2., 3.])
    assert error == pytest.approx([(3 * 0.5 + 1) / (3 + 2 + 4)])
    # Between the given distances, also where the difference changes its sign.
    error = relative_law_error([1., 3.], [[3., -1.]], [[1., 1.]], [2., 2.5])
    assert error == pytest.approx([(0 + 1) / 2])


def test_signs_do_not_cancel():
    learned = TRUE + 0.05 * np.sign(DISTANCE - 2)
    error = relative_law_error(DISTANCE, learned, TRUE, SEEN)
    assert error == pytest.approx(
        0.05 / np.abs([(-0.1 * SEEN).mean(), (0.2 / SEEN**2).mean()]), rel=0.03)


def test_few_extreme_distances_do_not_count():
    seen = np.concatenate([SEEN.repeat(100), [0.6, 3.9]])
    inside = (DISTANCE > 0.9) & (DISTANCE < 3.1)
    learned = np.where(inside, TRUE, 1e3)
    assert relative_law_error(DISTANCE, learned, TRUE, seen).tolist() == [0, 0]
    # But few distances do not count as extreme.
    assert supported_distances(DISTANCE, SEEN).tolist() == SEEN.tolist()


def test_distances_where_no_law_is_given_are_left_out():
    seen = np.array([0., 0.1, 1., 2., 9.])
    assert supported_distances(DISTANCE, seen).tolist() == [1, 2]


def test_tensors_of_any_precision_will_do():
    learned = torch.tensor(1.1 * TRUE, dtype=torch.float, requires_grad=True)
    error = relative_law_error(torch.tensor(DISTANCE), learned,
                               torch.tensor(TRUE),
                               torch.tensor(SEEN).float())
    assert isinstance(error, np.ndarray)
    assert error == pytest.approx([0.1, 0.1], rel=1e-4)


@pytest.mark.parametrize('name, value, error, message', [
    ('distance', DISTANCE[None], ValueError, r'distance has shape \[1, 701\]'),
    ('distance', DISTANCE[:1], ValueError, 'at least two distances'),
    ('distance', DISTANCE[::-1].copy(), ValueError, 'and increasing'),
    ('distance', DISTANCE - 0.5, ValueError, 'positive'),
    ('distance', DISTANCE * math.nan, ValueError, 'distance holds NaN'),
    ('distance', DISTANCE * 1j, TypeError, 'distance must hold real numbers'),
    ('distance', DISTANCE + 9, ValueError, 'expected ranges that overlap'),
    ('learned', TRUE.T, ValueError, r'expected \[num_channels, 701\]'),
    ('learned', TRUE[0], ValueError, r'learned has shape \[701\]'),
    ('learned', TRUE[:0], ValueError, r'learned has shape \[0, 701\]'),
    ('learned', TRUE * math.inf, ValueError, 'learned holds NaN or infinite'),
    ('true', TRUE[:1], ValueError, r'shape \[1, 701\], expected \[2, 701\]'),
    ('true', TRUE * math.nan, ValueError, 'true holds NaN'),
    ('true', TRUE * [[1], [0]], ValueError, 'law of channel 1 is zero'),
    ('seen', SEEN[None], ValueError, r'expected \[num_seen\]'),
    ('seen', SEEN[:0], ValueError, 'at least one distance'),
    ('seen', -SEEN, ValueError, 'none negative'),
    ('seen', SEEN > 2, TypeError, 'seen must hold real numbers'),
    ('seen', SEEN * math.nan, ValueError, 'seen holds NaN'),
])
def test_bad_laws_are_refused(name, value, error, message):
    arguments = {
        'distance': DISTANCE,
        'learned': TRUE,
        'true': TRUE,
        'seen': SEEN
    }
    with pytest.raises(error, match=message):
        relative_law_error(**{**arguments, name: value})
