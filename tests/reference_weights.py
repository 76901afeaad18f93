"""Weights of the authors' modules as those of ours."""
import re

import torch

from pyg_fnri.nn import MultiplexConv, RolloutDecoder
from pyg_fnri.nn.models import MODELS

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


def with_their_weights(encoder, decoder, num_edge_types, model, skip_first):
    """Our model, in their units, of their encoder's and decoder's state."""
    num_features, hidden = len(decoder['out_fc3.weight']), len(
        encoder['mlp1.fc1.weight'])
    num_steps = encoder['mlp1.fc1.weight'].size(1) // num_features
    options = {'drop_null': True} if skip_first else {}
    out = MODELS[model](num_features, num_steps, num_edge_types, hidden,
                        **options)
    # Theirs may be of another size than the encoder.
    out.decoder = RolloutDecoder(
        MultiplexConv(num_features, num_features, out.latent.num_channels,
                      len(decoder['out_fc2.weight'])))
    channels = torch.arange(out.latent.num_logits).unsqueeze(0)
    if skip_first:
        channels = out.latent.channels(
            channels.split(out.latent.num_edge_types, dim=-1))
    state = {
        key: value
        for key, value in out.state_dict().items() if key.startswith('scaling.')
    }
    for key, value in encoder.items():
        for name, ours in NAMES.items():
            key = key.replace(name, ours)
        state[f'encoder.{key}'] = value
    for i in (1, 2):  # One linear layer per type; ours are stacked.
        theirs = [
            tuple(decoder[f'msg_fc{i}.{k}.{part}']
                  for part in ('weight', 'bias')) for k in channels[0].tolist()
        ]
        weight, bias = zip(*theirs)
        state[f'decoder.layer.weight{i}'] = torch.stack(weight).mT
        state[f'decoder.layer.bias{i}'] = torch.stack(bias)
    for key, value in decoder.items():
        if not key.startswith('msg_fc'):
            key = re.sub('out_fc([123])', lambda m: f'{2 * int(m[1]) - 2}', key)
            state[f'decoder.layer.node_mlp.{key}'] = value
    out.load_state_dict(state)
    return out.eval()
