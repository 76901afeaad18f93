from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from pyg_fnri.experiments.ablations import Method
from pyg_fnri.experiments.law_finding import LawFinder, add_noise, score
from pyg_fnri.experiments.robustness import STUDIES
from pyg_fnri.inference import Refined

# Whole discoveries, if tiny ones.
pytestmark = pytest.mark.slow

SMOKE = STUDIES['smoke']
STANDARD = SMOKE.standard


@pytest.fixture(scope='module')
def finder(tmp_path_factory):
    return LawFinder(SMOKE, str(tmp_path_factory.mktemp('robust')))


@pytest.fixture(scope='module')
def figures(finder):
    return finder.measure(STANDARD, 0, sampled=True)


def test_figures(figures):
    assert figures.keys() == {
        'confirmed', 'num_starts', 'law_error', 'noise', 'training_accuracy',
        'discovery_seconds', 'refined', 'sampled'
    }
    assert 1 <= figures['num_starts'] <= 2
    assert figures['num_starts'] == 2 or not figures['confirmed']
    assert figures['noise'] == [0] * 4
    for way in ('refined', 'sampled'):
        combined, layers = figures[way]['combined'], figures[way]['layers']
        assert 0 < combined <= min(layers) <= max(layers) <= 1
        assert 0 <= figures[way]['calibration_error'] <= 1


def test_the_same_again(finder, figures):
    other = LawFinder(SMOKE, finder.root).measure(STANDARD, 0, sampled=False)
    for key in ('combined', 'layers', 'calibration_error'):
        assert other['refined'][key] == figures['refined'][key]
    assert other['law_error'] == figures['law_error']
    assert 'sampled' not in other


def test_conditions_that_share_their_laws_find_them_once(finder):
    found = finder.find(STANDARD, 0)
    method = replace(STANDARD.method, num_restarts=0)
    shared = replace(STANDARD, num_particles=3, method=method)
    assert finder.find(shared, 0) is found
    assert finder.find(shared, 1) is not found
    finder.find(STANDARD, 0)


def test_what_is_varied_is_varied(finder):
    condition = replace(STANDARD, num_particles=3, interval=0.2, num_observed=5)
    test = finder._batch(condition, 0, 'test')
    assert test.x.size() == (3 * STANDARD.num_test, 5, 4)
    # Frames at another interval are frames of the same motion.
    at = finder._batch(replace(STANDARD, interval=0.1), 0, 'test').x
    every_other = finder._batch(replace(STANDARD, interval=0.2), 0, 'test').x
    torch.testing.assert_close(every_other[:, :3], at[:, 1::2])
    found = finder.find(replace(STANDARD, interval=0.2), 0)
    assert found.model.decoder.layer.interval == 0.2
    assert found.model.decoder.layer.half_width == 5


def test_noise_of_training_and_unseen_systems_is_as_large(finder):
    condition = replace(STANDARD, noise_percent=10.)
    clean = finder._batch(condition, 0, 'train')
    found = finder.find(condition, 0)
    expected = 0.1 * clean.x.flatten(0, 1).std(0)
    torch.testing.assert_close(found.noise, expected)
    assert finder.measure(condition, 0, False)['noise'] == found.noise.tolist()


def test_added_noise_is_of_its_size_and_leaves_the_original_alone():
    data = Data(x=torch.zeros(200, 50, 2), y=torch.zeros(200, 50, 2),
                edge_index=torch.tensor([[0], [1]]))
    noise = torch.tensor([0.1, 2.0])
    out = add_noise(data, noise, torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        out.x.flatten(0, 1).std(0), noise, rtol=0.03, atol=0)
    assert not torch.equal(out.x, out.y)
    assert not data.x.any() and not data.y.any()


def test_nothing_to_find_is_a_figure(finder):
    # No transition.
    figures = finder.measure(replace(STANDARD, num_observed=1), 0, False)
    assert figures.keys() == {'failed'} and 'frames' in figures['failed']
    method = Method(trained=True)
    figures = finder.measure(replace(STANDARD, method=method), 0, False)
    assert 'trained encoder' in figures['failed']


def test_a_score_sees_through_the_order_of_layers():
    label = torch.tensor([[0, 1], [1, 1], [0, 0], [1, 0]] * 5)
    edge_index = torch.tensor([[0, 1], [1, 0]]).repeat(1, 10)
    edge_index += 2 * torch.arange(10).repeat_interleave(2)
    flipped = label.flip(-1)
    sure = [
        torch.nn.functional.one_hot(layer, 2).float() * 0.8 + 0.1
        for layer in flipped.unbind(-1)
    ]
    data = Data(edge_index=edge_index, edge_label=label)
    out = score(Refined(flipped, sure), data)
    assert out['combined'] == 1 and out['layers'] == [1, 1]
    assert out['calibration_error'] == pytest.approx(1 - 0.9**2, abs=1e-6)
