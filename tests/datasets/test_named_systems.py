import pytest

from pyg_fnri.datasets.named_systems import FORCES, SYSTEMS, find_system
from pyg_fnri.simulation import Charge, Kuramoto, Newtonian, Spring


def test_names_stand_for_systems():
    assert find_system() == ('springs_charges', SYSTEMS['springs_charges'])
    assert find_system('kuramoto') == ('kuramoto', Kuramoto())
    for name, forces in FORCES.items():
        assert find_system(name)[1] == Newtonian(forces)
    assert [list(system.layers.values())
            for system in SYSTEMS.values()] == [[2, 2], [2, 2, 2], [2], [3],
                                                [2]]


def test_own_forces_and_systems():
    assert find_system(forces=[Spring(0.3)]) == ('custom',
                                                 Newtonian([Spring(0.3)]))
    system = Kuramoto(coupling=-1.0)
    assert find_system('text', system=system) == ('text', system)
    # A name may be given to what it stands for.
    forces = [Spring(), Charge()]
    assert find_system('springs_charges', forces) == find_system()
    assert find_system('kuramoto', system=Kuramoto())[0] == 'kuramoto'


@pytest.mark.parametrize('arguments, error, match', [
    (dict(name='charges'), ValueError, "'nri_charged', 'kuramoto'.; pass"),
    (dict(system=Kuramoto), TypeError, 'must be a System object'),
    (dict(system='kuramoto'), TypeError, "not 'kuramoto'"),
    (dict(system=Kuramoto(), forces=[Spring()]), ValueError, 'Both forces and'),
    (dict(name='kuramoto', system=Kuramoto(-1.0)), ValueError, 'another name'),
    (dict(name='a/b', system=Kuramoto()), ValueError, 'name a folder'),
    (dict(forces=[]), ValueError, 'forces is empty'),
    (dict(forces=[Spring]), TypeError, 'Force objects'),
])
def test_wrong_arguments_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        find_system(**arguments)
