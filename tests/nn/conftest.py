import pytest

from pyg_fnri.nn import FNRI, NRI, SFNRI


@pytest.fixture(params=[NRI, FNRI, SFNRI])
def model_class(request):
    return request.param
