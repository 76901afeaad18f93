import pytest
import torch

from pyg_fnri.nn import FNRI
from pyg_fnri.recipes import DECODERS, ENCODERS, PaperRecipe


@pytest.mark.parametrize('encoder', ENCODERS)
@pytest.mark.parametrize('decoder', DECODERS)
def test_networks_have_the_sizes_of_the_recipe(encoder, decoder, make_system):
    recipe = PaperRecipe(hidden_channels=8, encoder=encoder, decoder=decoder,
                         burn_in=7)
    model = recipe.build(FNRI, 4, 14, [2, 3]).eval()
    widths = {p.size(-1) for p in model.parameters() if p.dim() > 1}
    assert 8 in widths and 256 not in widths
    # A memory has to see some frames; what has none, the first alone.
    assert model.decoder.burn_in == (7 if decoder == 'gru' else 1)
    data = make_system(num_steps=14)
    logits = model.encoder(data.x, data.edge_index)
    assert logits.shape == (20, 5)
    edge_attr = torch.rand(20, 5)
    path = model.decoder(data.x, data.edge_index, edge_attr)
    assert path.shape == (5, 13, 4)


@pytest.mark.parametrize('encoder', ENCODERS)
def test_encoders_drop_out_as_often_as_told(encoder):
    network = ENCODERS[encoder](4, 14, 2, 8, 0.25)
    assert {
        part.dropout
        for part in network.modules() if hasattr(part, 'dropout')
    } == {0.25}
