import pytest

from pyg_fnri.nn import FNRI, NRI, SFNRI


class ChargedFNRI(FNRI):
    """fNRI whose second layer-graph factors over particles."""
    def init_latent(self, num_edge_types, **kwargs):
        return super().init_latent(num_edge_types, node_layers=[1], **kwargs)


@pytest.fixture(params=[NRI, FNRI, SFNRI, ChargedFNRI])
def model_class(request):
    """Each model, and one whose latent graph is of two kinds."""
    return request.param
