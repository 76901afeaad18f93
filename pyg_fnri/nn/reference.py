"""Weights that the research code of NRI, fNRI and sfNRI has saved."""
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Optional, Union

import torch
from torch import Tensor

from pyg_fnri.nn.decoder import RolloutDecoder
from pyg_fnri.nn.latent import check_edge_types
from pyg_fnri.nn.models import MODELS, NRI
from pyg_fnri.nn.multiplex_conv import MultiplexConv

File = Union[str, os.PathLike]
State = Mapping[str, Tensor]

# Their names of an encoder's parts, and ours.
PARTS = {
    'mlp1': 'node_mlp1',
    'mlp2': 'edge_mlp1',
    'mlp3': 'node_mlp2',
    'mlp4': 'edge_mlp2',
    'fc1': 'lin1',
    'fc2': 'lin2',
    'bn': 'norm',
}
ENCODER_KEY = re.compile(r'(mlp[1-4])\.(fc1|fc2|bn)\.(\w+)|'
                         r'fc_out(?:\.0)?\.(?:weight|bias)')
DECODER_KEY = re.compile(r'(msg_fc[12]\.\d+|out_fc[123])\.(weight|bias)')


def from_reference_checkpoint(
    encoder: File,
    decoder: File,
    num_edge_types: Optional[Sequence[int]] = None,
    model: Optional[str] = None,
    skip_first: bool = False,
) -> NRI:
    r"""Loads the weights of a model that the authors' code of NRI, fNRI or
    sfNRI has trained. Same input, same output.

    Nothing in the files is executed: they hold names and numbers. Sizes are
    read off the weights. What they leave open is to be said by argument: four
    logits can be NRI's combinations of two times two types or fNRI's two
    layers of two types, and whether the decoder was trained with
    `--skip-first` shows nowhere.

    Their models work on trajectories scaled to [-1, 1], and so does the one
    returned. For physical units, fit its scaling to the trajectories that
    theirs was trained on: `model.scaling.fit(train.x)`.

    Supported are MLP encoders that are not split before their output layer
    (`--split-point 0`, the default) and MLP decoders.

    Args:
        encoder (str): The file that is called `encoder.pt` there.
        decoder (str): The file that is called `decoder.pt` there.
        num_edge_types (sequence of int, optional): Number of types of each
            kind of interaction, in the order of `--edge-types-list` as their
            code sorts it, descending. (default: if only one is possible)
        model (str, optional): `'nri'`, `'fnri'` or `'sfnri'`.
            (default: if only one is possible)
        skip_first (bool, optional): Whether theirs was trained with
            `--skip-first`: type 0 of each layer-graph passes no messages.
            (default: :obj:`False`)

    Returns:
        The model, in evaluation mode, on the CPU.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file holds something else, the two do not fit each
            other or the arguments, or more than one model is possible.
    """
    if model is not None and model not in MODELS:
        raise ValueError(f"Unknown model {model!r}; expected one of "
                         f"{', '.join(map(repr, MODELS))}.")
    states = _load(encoder, 'encoder'), _load(decoder, 'decoder')
    try:
        _check_supported(*states)
        num_logits, hidden = _output_layer(states[0])['weight'].shape
        num_features = states[1]['out_fc3.weight'].size(0)
        num_inputs = states[0]['mlp1.fc1.weight'].size(1)
        decoder_hidden = states[1]['out_fc2.weight'].size(0)
    except KeyError as error:
        raise ValueError(f"The weights in '{encoder}' and '{decoder}' are not "
                         f"complete: there is no {error}.") from error
    num_channels = sum('msg_fc1' in key and 'weight' in key
                       for key in states[1])
    if num_inputs % num_features or num_channels != num_logits:
        raise ValueError(
            f"The encoder in '{encoder}' has {num_inputs} inputs and "
            f"{num_logits} outputs, to which the decoder in '{decoder}' for "
            f"{num_features} features and {num_channels} edge types does not "
            f"fit; pass two files of one training.")
    name, num_edge_types = _choose(states[0], num_logits, num_edge_types, model)
    if skip_first and name == 'sfnri':
        raise ValueError("sfNRI has no channel for type 0 that its decoder "
                         "could skip; leave out skip_first.")
    options: dict[str, Any] = {'drop_null': True} if skip_first else {}
    out = MODELS[name](num_features, num_inputs // num_features, num_edge_types,
                       hidden, **options)
    # Theirs may be of another size than the encoder.
    out.decoder = RolloutDecoder(
        MultiplexConv(num_features, num_features, out.latent.num_channels,
                      decoder_hidden))
    try:
        result = out.load_state_dict(
            {
                **_encoder_state(states[0]),
                **_decoder_state(states[1], _channels(out, num_logits)),
            },
            strict=False,
        )
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"The weights in '{encoder}' and '{decoder}' are not those of one "
            f"MLP encoder and MLP decoder of the research code "
            f"({str(error).splitlines()[-1].strip()}).") from error
    # The scaling is not theirs, and old files lack a counter of no effect.
    missing = [
        key for key in result.missing_keys
        if not key.startswith('scaling.') and 'num_batches_tracked' not in key
    ]
    if missing:
        raise ValueError(f"The weights in '{encoder}' and '{decoder}' are not "
                         f"complete: there are none for {missing}.")
    return out.eval()


def _load(path: File, kind: str) -> State:
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no {kind} at '{path}'; expected "
                                f"the file {kind}.pt that the research code "
                                f"saves.")
    try:
        state: Any = torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # Pickle raises whatever the bytes suggest.
        raise ValueError(
            f"'{path}' holds no weights ({type(error).__name__}); expected "
            f"the file {kind}.pt that the research code saves. Whole models "
            f"are not loaded, since that executes what the file says.") from (
                error)
    if not isinstance(state, Mapping) or not all(
            isinstance(value, Tensor) for value in state.values()):
        raise ValueError(f"'{path}' holds no state dict; expected the file "
                         f"{kind}.pt that the research code saves.")
    # As `DataParallel` writes it.
    return {key.removeprefix('module.'): value for key, value in state.items()}


def _check_supported(encoder: State, decoder: State) -> None:
    for state, kind, known, first in [
        (encoder, 'encoder', ENCODER_KEY, 'mlp1.fc1.weight'),
        (decoder, 'decoder', DECODER_KEY, 'msg_fc1.0.weight'),
    ]:
        unknown = sorted(key for key in state if not known.fullmatch(key))
        if unknown or first not in state:
            raise ValueError(
                f"This {kind} is none that has a counterpart here: it has "
                f"{f'weights {unknown[0]!r}' if unknown else f'no {first!r}'}. "
                f"Expected an MLP {kind} of the research code, not split "
                f"before its output layer (--split-point 0).")
        for key, value in state.items():
            if key.endswith('.weight') and '.bn.' not in key and (value.dim()
                                                                  != 2):
                raise ValueError(f"The weights {key!r} of this {kind} must be "
                                 f"a matrix, but their shape is "
                                 f"{list(value.shape)}.")
    hidden, num_inputs = encoder['mlp4.fc1.weight'].shape
    if num_inputs != 3 * hidden:
        raise ValueError(f"This encoder passes no messages (--no-factor), "
                         f"which has no counterpart here: mlp4 has "
                         f"{num_inputs} inputs, not 3 x {hidden}.")


def _output_layer(encoder: State) -> dict[str, Tensor]:
    """The last layer: fNRI's code has a list of one, the others one."""
    prefix = 'fc_out.0.' if 'fc_out.0.weight' in encoder else 'fc_out.'
    return {key: encoder[prefix + key] for key in ('weight', 'bias')}


def _choose(
    encoder: State,
    num_logits: int,
    num_edge_types: Optional[Sequence[int]],
    model: Optional[str],
) -> tuple[str, list[int]]:
    """The one model, and its numbers of types, that the weights can be of."""
    # fNRI's code trains NRI too; the original has one output layer, as sfNRI.
    listed = 'fc_out.0.weight' in encoder
    possible = {
        name: _guesses(name, num_logits, num_edge_types)
        for name in (['fnri', 'nri'] if listed else ['sfnri', 'nri'])
        if model in (None, name)
    }
    found = [(name, types) for name, guesses in possible.items()
             for types in guesses]
    # One layer-graph of all types: NRI and fNRI are the same model.
    if len(found) > 1 and all(name != 'sfnri' and types == [num_logits]
                              for name, types in found):
        found = found[:1]
    if len(found) == 1:
        return found[0]
    given = f"num_edge_types={num_edge_types}, model={model!r}"
    if not found:
        raise ValueError(f"This encoder has {num_logits} logits per edge "
                         f"({'fc_out.0' if listed else 'fc_out'}), which does "
                         f"not fit {given}.")
    raise ValueError(
        f"This encoder has {num_logits} logits per edge, which can be "
        f"{' or '.join(f'{name} of {types}' for name, types in found)}; say "
        f"which by num_edge_types and model.")


def _guesses(
    name: str,
    num_logits: int,
    num_edge_types: Optional[Sequence[int]],
) -> list[list[int]]:
    """Numbers of types with which a model has so many logits."""
    if num_edge_types is not None:
        types = check_edge_types(num_edge_types)
        size = {
            'nri': math.prod(types),
            'fnri': sum(types),
            'sfnri': sum(types) - len(types),
        }[name]
        return [types] if size == num_logits else []
    if name == 'sfnri':  # Their code has two types in each layer-graph.
        return [[2] * num_logits]
    if num_logits < 2:
        return []
    if name == 'nri':
        return [[num_logits]]
    # As many as are needed to see that there are several.
    return list(islice(_partitions(num_logits, num_logits), 3))


def _partitions(total: int, largest: int) -> Iterator[list[int]]:
    """Descending numbers of at least 2, at most `largest`, of that sum."""
    if total == 0:
        yield []
    for first in range(min(total, largest), 1, -1):
        for rest in _partitions(total - first, first):
            yield [first, *rest]


def _channels(model: NRI, num_logits: int) -> list[int]:
    """Which of their message networks each channel of ours is."""
    every = list(range(num_logits))
    if not getattr(model.latent, 'drop_null', False):
        return every
    start = 0
    for size in model.latent.num_edge_types:
        every.remove(start)
        start += size
    return every


def _encoder_state(encoder: State) -> dict[str, Tensor]:
    state = {}
    for key, value in encoder.items():
        match = ENCODER_KEY.fullmatch(key)
        if match and match[1]:
            part, layer, name = PARTS[match[1]], PARTS[match[2]], match[3]
            state[f'encoder.{part}.{layer}.{name}'] = value
    for key, value in _output_layer(encoder).items():
        state[f'encoder.lin.{key}'] = value
    return state


def _decoder_state(decoder: State, channels: list[int]) -> dict[str, Tensor]:
    state = {}
    for i in (1, 2):  # One linear layer per type; ours are stacked.
        state[f'decoder.layer.weight{i}'] = torch.stack(
            [decoder[f'msg_fc{i}.{k}.weight'].t() for k in channels])
        state[f'decoder.layer.bias{i}'] = torch.stack(
            [decoder[f'msg_fc{i}.{k}.bias'] for k in channels])
    for i, place in ((1, 0), (2, 2), (3, 4)):
        for key in ('weight', 'bias'):
            state[f'decoder.layer.node_mlp.{place}.{key}'] = decoder[
                f'out_fc{i}.{key}']
    return state
