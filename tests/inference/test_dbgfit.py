from test_fit_laws import *
from test_fit_laws import make_layer, fit, law_error
from pyg_fnri.inference.em import EM_ANNEALING
def test_dbg(flights, truth):
    for share in (.05, .15):
        wrong = torch.rand(truth.size()) < share
        z = (truth - wrong.float()).abs()
        for tol in ((.3,), (.1,), (.3, .1), (.3, .1, .03), (.3,.1,.03,.01), (.1, .002), (.3,.1,.03,.01,.002)):
            layer = make_layer(); fit(layer, flights, z, tolerances=tol)
            l2 = make_layer(); fit(l2, flights, z, tolerances=tol, num_transitions=96)
            print('X', share, tol, law_error(layer.law, flights), law_error(l2.law, flights))
    assert 0
