import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_fnri.nn import FNRI, NRI, SFNRI
from pyg_fnri.nn.reference import from_reference_checkpoint

ARRAYS = Path(__file__).parent.parent / 'reference'
NAMES = {NRI: 'nri', FNRI: 'fnri', SFNRI: 'sfnri'}


class Saved:
    """The authors' weights, saved as their code saves them."""
    def __init__(self, arrays, folder):
        self.folder = folder
        self.states = {
            part:
            OrderedDict((key.partition('/')[2], torch.from_numpy(value))
                        for key, value in arrays.items()
                        if key.startswith(part))
            for part in ('encoder', 'decoder')
        }

    def load(self, *args, **kwargs):
        paths = []
        for part, state in self.states.items():
            paths.append(self.folder / f'{part}.pt')
            torch.save(state, paths[-1])
        return from_reference_checkpoint(*paths, *args, **kwargs)


@pytest.fixture
def saved(tmp_path):
    with np.load(ARRAYS / 'fnri.npz') as arrays:
        return Saved(dict(arrays), tmp_path)


def test_same_logits_and_rollouts(reference, tmp_path):
    kind = NAMES[reference.model_class]
    model = Saved(reference.arrays, tmp_path).load(reference.layers, kind)
    assert type(model) is reference.model_class and not model.training
    logits = model.encode(reference.x, reference.edge_index)
    torch.testing.assert_close(logits, reference.flat('logits'))
    out = model.decode(reference.x, reference.edge_index,
                       reference.flat('edge_attr'), 10)
    torch.testing.assert_close(out, reference.flat('rollout_10'))


def test_same_rollouts_without_the_null_types(categorical_reference, tmp_path):
    reference = categorical_reference
    kind = NAMES[reference.model_class]
    model = Saved(reference.arrays, tmp_path).load(reference.layers, kind,
                                                   skip_first=True)
    sizes = model.latent.num_edge_types
    edge_attr = model.latent.channels(
        reference.flat('edge_attr').split(sizes, dim=-1))
    out = model.decode(reference.x, reference.edge_index, edge_attr, 10)
    torch.testing.assert_close(out, reference.flat('rollout_skip_first_10'))


def test_old_files_and_those_of_several_gpus_are_read(saved):
    expected = saved.load([2, 2], 'fnri').state_dict()
    saved.states = {
        part:
        OrderedDict((f'module.{key}', value) for key, value in state.items()
                    if 'num_batches_tracked' not in key)
        for part, state in saved.states.items()
    }
    for key, value in saved.load([2, 2], 'fnri').state_dict().items():
        if 'num_batches_tracked' not in key:
            assert torch.equal(value, expected[key]), key


@pytest.mark.parametrize(
    'part, key, value',
    [
        ('encoder', 'cnn.conv1.weight', torch.zeros(3)),  # CNN encoders.
        ('encoder', 'mlp4.0.fc1.weight', torch.zeros(2)),  # Split ones.
        ('encoder', 'mlp4.fc1.weight', torch.zeros(8, 16)),  # --no-factor.
        ('encoder', 'mlp2.bn.running_mean', None),
        ('decoder', 'hidden_r.weight', torch.zeros(2)),  # Recurrent ones.
        ('decoder', 'msg_fc1.4.weight', torch.zeros(8, 8))  # Of more types.
    ])
def test_other_weights_are_refused(part, key, value, saved):
    if value is None:
        del saved.states[part][key]
    else:
        saved.states[part][key] = value
    with pytest.raises(ValueError, match='not the weights'):
        saved.load([2, 2], 'fnri')


def test_other_models_are_refused(saved):
    for arguments in (([2, 3], 'fnri'), ([2, 2], 'sfnri'), ([2, 2], 'NRI')):
        with pytest.raises(ValueError, match='not the weights'):
            saved.load(*arguments)


class Dangerous:
    def __reduce__(self):
        return Path.touch, (Path('executed'), )


def test_nothing_in_a_file_is_executed(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved.load([2, 2], 'fnri')
    (tmp_path / 'encoder.pt').write_bytes(pickle.dumps(Dangerous(), protocol=2))
    with pytest.raises(pickle.UnpicklingError):
        from_reference_checkpoint('encoder.pt', 'decoder.pt', [2, 2], 'fnri')
    assert not (tmp_path / 'executed').exists()
