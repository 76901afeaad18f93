# %% [markdown]
# # A force of your own
#
# A force is one method. The simulator compiles it, and the laws are found
# again from the motion.
#
# ## Define it
#
# A force is a frozen dataclass with the one method `magnitude`: newtons at a
# distance in metres, positive where it repels. Nothing has to be registered.
# Here it is Yukawa's, the force of a charge that others screen.

# %%
from dataclasses import dataclass

import numpy as np
from pyg_fnri.simulation import Force, Spring


@dataclass(frozen=True)
class Yukawa(Force):
    strength: float = 0.4
    length: float = 1.0

    def magnitude(self, distance: float) -> float:
        decay = np.exp(-distance / self.length)
        return self.strength * decay * (1 / distance + 1 / self.length) / distance


# %% [markdown]
# ## Simulate it
#
# Each force is a layer of the graph. The name of the data set is up to you. The
# library makes the data anew when you change the code of the force.

# %%
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.transforms import SplitTrajectory

NUM_SYSTEMS = (500, 200, 200)  # (32, 16, 16) in the tests
train, val, test = (
    ParticleSystems('datasets', 'springs_yukawa', split,
                    num_systems=NUM_SYSTEMS, forces=[Spring(), Yukawa()],
                    transform=SplitTrajectory(49))
    for split in ('train', 'val', 'test'))
print(train.names, train[0])

# %% [markdown]
# ## Find it again
#
# The search for laws gets the trajectories, the interval between frames and the
# walls. It does not get the force.

# %%
import torch
from pyg_fnri.evaluation import law_curves
from pyg_fnri.inference import refine
from pyg_fnri.laws import check_laws, discover_force_laws
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.plot import plot_laws
from pyg_fnri.training import Config, build_module

module = build_module(
    Config.for_dataset(train, num_observed=49, recipe='laws'))
module.fit_units(train.x)
model = module.with_laws(interval=0.1, half_width=5.0).model
discover_force_laws(model, next(iter(SystemLoader(train, len(train)))),
                    torch.Generator().manual_seed(0))
print(check_laws(model, next(iter(SystemLoader(val, 100)))))

# %%
batch = next(iter(SystemLoader(test, len(test))))
accuracy = EdgeAccuracy([2, 2])
accuracy.update(refine(model, batch).edge_type, batch.edge_label)
print(f'{accuracy.compute().combined:.1%} of the edges are right')
curves = law_curves(model.decoder.layer, test, accuracy.compute().relabelling)
for name, words in curves.words.items():
    print(f'{name}: {words}')
plot_laws(curves.distance, curves.learned, curves.true, names=curves.names,
          seen=curves.seen).savefig('own_force.png')  # The laws of springs and of the force defined above, learned over true

# %% [markdown]
# ## Systems that are more than forces
#
# Oscillators, walkers or neurons have no force of distance. A subclass of
# `System` describes them, with its `layers` and one method, `simulate`. The
# [oscillators](kuramoto.py) are one; [Contributing](../../CONTRIBUTING.md) says
# what else can be added in this way.
