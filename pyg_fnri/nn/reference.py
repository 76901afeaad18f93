"""Weights that the research code of NRI, fNRI and sfNRI has saved."""
import os
import re
from collections.abc import Sequence
from typing import Any, Union

import torch
from torch import Tensor

from pyg_fnri.nn.decoder import RolloutDecoder
from pyg_fnri.nn.models import MODELS, NRI
from pyg_fnri.nn.multiplex_conv import MultiplexConv

File = Union[str, os.PathLike[str]]

# Their names of an encoder's parts, and ours.
NAMES = {
    'mlp1.': 'node_mlp1.',
    'mlp2.': 'edge_mlp1.',
    'mlp3.': 'node_mlp2.',
    'mlp4.': 'edge_mlp2.',
    '.fc1.': '.lin1.',
    '.fc2.': '.lin2.',
    '.bn.': '.norm.',
    'fc_out.0.': 'lin.',  # fNRI's code has a list of one output layer,
    'fc_out.': 'lin.'  # the others have one.
}


def from_reference_checkpoint(encoder: File, decoder: File,
                              num_edge_types: Sequence[int], model: str,
                              skip_first: bool = False) -> NRI:
    """Loads the weights of a model that the authors' code of NRI, fNRI or sfNRI
    has trained: MLP encoders of `--split-point 0` and MLP decoders. No code in
    the files is run. The model works on trajectories scaled to [-1, 1]; for
    physical units, call `model.scaling.fit(train.x)`.

    Args:
        encoder, decoder: The files `encoder.pt` and `decoder.pt`.
        num_edge_types: Number of types of each kind of interaction, descending,
            as their code sorts `--edge-types-list`.
        model: `'nri'`, `'fnri'` or `'sfnri'`.
        skip_first: Whether theirs was trained with `--skip-first`.
    """
    theirs = _load(encoder), _load(decoder)
    options: dict[str, Any] = {'drop_null': True} if skip_first else {}
    try:
        num_features = len(theirs[1]['out_fc3.weight'])
        out = MODELS[model](
            num_features, theirs[0]['mlp1.fc1.weight'].size(1) // num_features,
            num_edge_types, len(theirs[0]['mlp1.fc1.weight']), **options)
        # Theirs may be of another size than the encoder.
        out.decoder = RolloutDecoder(
            MultiplexConv(num_features, num_features, out.latent.num_channels,
                          len(theirs[1]['out_fc2.weight'])))
        if f'msg_fc1.{out.latent.num_logits}.weight' in theirs[1]:
            raise KeyError('the decoder has more types than the encoder')
        channels = torch.arange(out.latent.num_logits).unsqueeze(0)
        if skip_first:
            sizes = out.latent.num_edge_types
            channels = out.latent.channels(channels.split(sizes, dim=-1))
        # What is not theirs, and counters of no effect that old files lack.
        state = {
            key: value
            for key, value in out.state_dict().items()
            if key.startswith(('scaling.',
                               'latent.')) or key.endswith('batches_tracked')
        }
        state |= _encoder_state(theirs[0])
        state |= _decoder_state(theirs[1], channels[0].tolist())
        out.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"'{encoder}' and '{decoder}' are not the weights of an MLP "
            f"encoder and an MLP decoder of the research code's {model} of "
            f"{num_edge_types} edge types: {error}") from error
    return out.eval()


def _load(path: File) -> dict[str, Tensor]:
    state = torch.load(path, map_location='cpu', weights_only=True)
    # As `DataParallel` writes it.
    return {key.removeprefix('module.'): value for key, value in state.items()}


def _encoder_state(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    state = {}
    for key, value in theirs.items():
        for name, ours in NAMES.items():
            key = key.replace(name, ours)
        state[f'encoder.{key}'] = value
    return state


def _decoder_state(theirs: dict[str, Tensor],
                   channels: Sequence[int]) -> dict[str, Tensor]:
    state = {}
    for i in (1, 2):  # One linear layer per type; ours are stacked.
        state[f'decoder.layer.weight{i}'] = torch.stack(
            [theirs[f'msg_fc{i}.{k}.weight'].t() for k in channels])
        state[f'decoder.layer.bias{i}'] = torch.stack(
            [theirs[f'msg_fc{i}.{k}.bias'] for k in channels])
    for key, value in theirs.items():
        if not key.startswith('msg_fc'):
            key = re.sub('out_fc([123])', lambda m: f'{2 * int(m[1]) - 2}', key)
            state[f'decoder.layer.node_mlp.{key}'] = value
    return state
