"""What training leaves behind."""
import torch

#: The files of a run.
FILES = {'best.ckpt', 'last.ckpt', 'metrics.csv', 'curves.png', 'command.txt'}


def read_checkpoint(path):
    return torch.load(path, weights_only=True)


def assert_same_weights(path, other):
    state = read_checkpoint(path)['state_dict']
    other = read_checkpoint(other)['state_dict']
    assert state.keys() == other.keys()
    for key, value in state.items():
        assert value.equal(other[key]), key
