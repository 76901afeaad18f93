import numpy as np
import pytest
import torch

fnri = pytest.mark.parametrize('reference', ['fnri'], indirect=True)


@pytest.mark.parametrize(
    'reference', ['nri', 'nri_three_layers', 'fnri', 'fnri_three_layers'],
    indirect=True)
def test_same_rollouts_without_the_null_types(reference):
    model = reference.model(skip_first=True)
    sizes = model.latent.num_edge_types
    edge_attr = model.latent.channels(
        reference.flat('edge_attr').split(sizes, dim=-1))
    out = model.decode(reference.x, reference.edge_index, edge_attr, 10)
    torch.testing.assert_close(out, reference.flat('rollout_skip_first_10'))


@fnri
def test_old_files_and_those_of_several_gpus_are_read(reference):
    expected = reference.model().state_dict()
    reference.arrays = {
        key.replace('/', '/module.'): value
        for key, value in reference.arrays.items()
        if 'num_batches_tracked' not in key
    }
    for key, value in reference.model().state_dict().items():
        if 'num_batches_tracked' not in key:
            assert torch.equal(value, expected[key]), key


@pytest.mark.parametrize(
    'key, size',
    [
        ('encoder/cnn.conv1.weight', 3),  # CNN encoders.
        ('encoder/mlp4.fc1.weight', (8, 16)),  # --no-factor.
        ('encoder/mlp2.bn.running_mean', None),
        ('decoder/hidden_r.weight', 2),  # Recurrent ones.
        ('decoder/msg_fc1.4.weight', (8, 8))  # Of more types.
    ])
@fnri
def test_other_weights_are_refused(reference, key, size):
    if size is None:
        del reference.arrays[key]
    else:
        reference.arrays[key] = torch.zeros(size).numpy()
    with pytest.raises(ValueError, match='not the weights'):
        reference.model()


@fnri
def test_other_models_are_refused(reference):
    for layers, name in (([2, 3], 'fnri'), ([2, 2], 'sfnri'), ([2, 2], 'NRI')):
        reference.name, reference.arrays['layers'] = name, np.array(layers)
        with pytest.raises(ValueError, match='not the weights'):
            reference.model()
