from dataclasses import dataclass

from pyg_fnri.datasets.named_systems import SYSTEMS
from pyg_fnri.datasets.system_recipe import describe_system
from pyg_fnri.simulation import (
    Kuramoto,
    Newtonian,
    NRISprings,
    SignedCharges,
    Spring,
)


@dataclass(frozen=True)
class Heavier(Newtonian):
    def simulate(self, edge_types, seed, num_threads=None, progress=False):
        return super().simulate(edge_types, seed) / 2


def test_the_papers_recipe_stays_what_it_is():
    # Data sets that exist are found by a digest of it.
    constants, spring, charge = describe_system(SYSTEMS['springs_charges'])
    assert constants == (
        "simulate: {'num_dimensions': 2, 'num_steps': 10000, 'step_size': "
        "0.001, 'sample_every': 100, 'box_half_width': 5.0, 'position_std': "
        "0.5, 'speed': 0.5, 'max_kick': 0.1, 'interactions': None, "
        "'initial_position': None, 'initial_velocity': None}")
    assert spring.startswith('force: Spring(stiffness=0.1) -0.005 ')
    assert charge.startswith('force: Charge(strength=0.2) 80 ')


def test_every_constant_changes_the_recipe():
    systems = [
        *SYSTEMS.values(),
        Newtonian([Spring()]),
        Newtonian([Spring(0.2)]),
        Newtonian([Spring()], box_half_width=None),
        Newtonian([Spring()], speed=1.0),
        Newtonian([Spring()], num_dimensions=3),
        Heavier([Spring()]),
        NRISprings((Spring(0.2), )),
        NRISprings(position_std=1.0),
        SignedCharges(softening=0.2),
        SignedCharges(step_size=1e-4),
        Kuramoto(coupling=-1.0),
        Kuramoto(num_frames=50),
    ]
    recipes = ['\n'.join(describe_system(system)) for system in systems]
    assert len(set(recipes)) == len(systems)


def test_the_code_of_own_systems_is_a_part_of_it():
    recipe = '\n'.join(describe_system(Heavier([Spring()])))
    assert 'super().simulate(edge_types, seed) / 2' in recipe
