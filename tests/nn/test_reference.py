import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_fnri.data import from_trajectory
from pyg_fnri.nn import FNRI, NRI, SFNRI
from pyg_fnri.nn.reference import from_reference_checkpoint

ARRAYS = Path(__file__).parent.parent / 'reference'
NAMES = {NRI: 'nri', FNRI: 'fnri', SFNRI: 'sfnri'}


class Saved:
    """The authors' weights, saved as their code saves them."""
    def __init__(self, arrays, folder):
        self.arrays = arrays
        self.folder = folder
        self.states = {
            part:
            OrderedDict((key.partition('/')[2], torch.from_numpy(value))
                        for key, value in self.arrays.items()
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
    def save(name):
        with np.load(ARRAYS / f'{name}.npz') as arrays:
            return Saved(dict(arrays), tmp_path)

    return save


def test_same_logits_and_rollouts(reference, tmp_path):
    kind = NAMES[reference.model_class]
    model = Saved(reference.arrays, tmp_path).load(reference.layers, kind)
    assert type(model) is reference.model_class and not model.training
    logits = model.encode(reference.x, reference.edge_index)
    torch.testing.assert_close(logits, reference.flat('logits'))
    for pred_steps in (1, 5, 10, 12):
        out = model.decode(reference.x, reference.edge_index,
                           reference.flat('edge_attr'), pred_steps)
        torch.testing.assert_close(out, reference.flat(f'rollout_{pred_steps}'))


def test_same_rollouts_without_the_null_types(categorical_reference, tmp_path):
    reference = categorical_reference
    kind = NAMES[reference.model_class]
    model = Saved(reference.arrays, tmp_path).load(reference.layers, kind,
                                                   skip_first=True)
    sizes = model.latent.num_edge_types
    edge_attr = model.latent.channels(
        reference.flat('edge_attr').split(sizes, dim=-1))
    for pred_steps in (1, 5, 10, 12):
        out = model.decode(reference.x, reference.edge_index, edge_attr,
                           pred_steps)
        torch.testing.assert_close(
            out, reference.flat(f'rollout_skip_first_{pred_steps}'))


def test_physical_units_are_a_matter_of_the_scaling(saved):
    model = saved('fnri').load([2, 2], 'fnri')
    x = torch.randn(5, 12, 4)
    scaled = from_trajectory(x)
    physical = from_trajectory(3 * x + 1)
    expected = model.posterior(scaled)
    model.scaling.offset.fill_(1)
    model.scaling.scale.fill_(3)
    torch.testing.assert_close(model.posterior(physical), expected)


@pytest.mark.parametrize('name, args, kind', [
    ('fnri_three_layers', ([2, 2, 2], ), FNRI),
    ('nri_three_layers', ([2, 2, 2], ), NRI),
    ('sfnri', ([2, 2], ), SFNRI),
    ('sfnri_three_layers', (None, 'sfnri'), SFNRI),
    ('nri', (None, 'nri'), NRI),
])
def test_what_can_be_inferred_need_not_be_said(name, args, kind, saved):
    ours = saved(name)
    model = ours.load(*args)
    assert type(model) is kind
    assert model.latent.num_logits == ours.arrays['logits'].shape[-1]
    assert model.encoder.in_channels == 4
    assert model.encoder.num_steps == ours.arrays['x'].shape[2]


def shrink(state, num_logits):
    """The first logits and message networks only."""
    out = OrderedDict()
    for key, value in state.items():
        if key.startswith('fc_out'):
            value = value[:num_logits]
        if key.startswith('msg') and int(key.split('.')[1]) >= num_logits:
            continue
        out[key] = value
    return out


@pytest.mark.parametrize('name, num_logits, kind, types', [
    ('fnri', 2, FNRI, [2]),
    ('fnri', 3, FNRI, [3]),
    ('sfnri', 1, SFNRI, [2]),
])
def test_few_logits_say_all(name, num_logits, kind, types, saved):
    ours = saved(name)
    ours.states = {
        part: shrink(state, num_logits)
        for part, state in ours.states.items()
    }
    model = ours.load()
    assert type(model) is kind and model.latent.num_edge_types == types


@pytest.mark.parametrize('name, args, message', [
    ('nri', (), r'fnri of \[4\] or fnri of \[2, 2\] or nri of \[4\]'),
    ('fnri', ([2, 2], ), r'fnri of \[2, 2\] or nri of \[2, 2\]'),
    ('sfnri', (), r'sfnri of \[2, 2\] or nri of \[2\]'),
    ('fnri', ([2, 3], ), '4 logits .* not fit'),
    ('fnri', ([2, 2], 'sfnri'), 'not fit'),
    ('sfnri', ([2, 2], 'fnri'), 'not fit'),
    ('fnri', ([2, 2], 'NRI'), "Unknown model 'NRI'"),
    ('sfnri', ([2, 2], 'sfnri', True), 'leave out skip_first'),
])
def test_what_is_ambiguous_or_wrong_is_said(name, args, message, saved):
    with pytest.raises(ValueError, match=message):
        saved(name).load(*args)


def test_encoder_and_decoder_of_different_sizes(saved):
    ours = saved('fnri')
    decoder = ours.states['decoder']
    # Six of the eight hidden units, whichever those are.
    for key, value in decoder.items():
        rows = slice(6 if value.size(0) == 8 else None)
        if value.dim() == 1:
            decoder[key] = value[rows]
        elif 'msg_fc1' in key:
            decoder[key] = value[rows]
        else:
            columns = 10 if 'out_fc1' in key else 6
            decoder[key] = value[rows, :columns]
    model = ours.load([2, 2], 'fnri')
    assert model.decoder.layer.hidden_channels == 6
    assert torch.equal(model.decoder.layer.weight1[3],
                       decoder['msg_fc1.3.weight'].t())
    model.predict_trajectory(from_trajectory(torch.randn(3, 12, 4)), 2)


def test_old_files_and_those_of_several_gpus_are_read(saved):
    ours = saved('fnri')
    expected = ours.load([2, 2], 'fnri').state_dict()
    ours.states = {
        part:
        OrderedDict((f'module.{key}', value) for key, value in state.items()
                    if 'num_batches_tracked' not in key)
        for part, state in ours.states.items()
    }
    for key, value in ours.load([2, 2], 'fnri').state_dict().items():
        if 'num_batches_tracked' not in key:
            assert torch.equal(value, expected[key]), key


@pytest.mark.parametrize('part, change, message', [
    ('encoder', {
        'cnn.conv1.weight': 3
    }, "'cnn.conv1.weight'"),
    ('encoder', {
        'mlp4.0.fc1.weight': 2
    }, 'not split'),
    ('encoder', {
        'mlp4.fc1.weight': torch.zeros(8, 16)
    }, 'no-factor'),
    ('encoder', {
        'mlp1.fc2.weight': torch.zeros(8, 9)
    }, 'size mismatch'),
    ('encoder', {
        'mlp2.bn.running_mean': None
    }, 'running_mean'),
    ('encoder', {
        'mlp1.fc1.weight': torch.zeros(48)
    }, 'must be a matrix'),
    ('encoder', {
        'fc_out.0.weight': None
    }, 'not complete'),
    ('decoder', {
        'hidden_r.weight': 2
    }, "'hidden_r.weight'"),
    ('decoder', {
        'msg_fc2.1.weight': None
    }, 'msg_fc2.1.weight'),
    ('decoder', {
        'msg_fc1.3.weight': None
    }, 'does not fit'),
    ('decoder', {
        'out_fc3.weight': torch.zeros(5, 8)
    }, 'does not fit'),
])
def test_other_weights_are_refused(part, change, message, saved):
    ours = saved('fnri')
    for key, value in change.items():
        if value is None:
            del ours.states[part][key]
        else:
            ours.states[part][key] = value if isinstance(
                value, torch.Tensor) else torch.zeros(value)
    with pytest.raises(ValueError, match=message):
        ours.load([2, 2], 'fnri')


class Dangerous:
    def __reduce__(self):
        return Path.touch, (Path('executed'), )


def test_nothing_in_a_file_is_executed(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = saved('fnri')
    ours.load([2, 2], 'fnri')
    (tmp_path / 'encoder.pt').write_bytes(pickle.dumps(Dangerous(), protocol=2))
    with pytest.raises(ValueError, match='holds no weights'):
        from_reference_checkpoint('encoder.pt', 'decoder.pt')
    torch.save({'weight': [1, 2]}, 'encoder.pt')
    with pytest.raises(ValueError, match='no state dict'):
        from_reference_checkpoint('encoder.pt', 'decoder.pt')
    assert not (tmp_path / 'executed').exists()


def test_missing_files_are_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="encoder at '.*encoder.pt'"):
        from_reference_checkpoint(tmp_path / 'encoder.pt',
                                  tmp_path / 'decoder.pt')
