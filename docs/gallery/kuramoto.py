# %% [markdown]
# # Oscillators: Kuramoto's model
#
# Phases instead of particles: who is coupled to whom, and by which function?
#
# Each oscillator turns at a frequency of its own, and each coupled pair pulls
# its phases together,
#
# $$\frac{d\theta_i}{dt} = \omega_i + \kappa \sum_j a_{ij} \sin(\theta_j - \theta_i).$$
#
# The features are $\cos\theta$, $\sin\theta$, the rate $d\theta/dt$ and the
# frequency $\omega$. There are no forces and no inertia here. Laws are then
# rates by the offset of two phases, of [first
# order](../explanation/additive_model.md).

# %%
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.transforms import SplitTrajectory

NUM_SYSTEMS = (200, 100, 200)  # (30, 30, 8) in the tests
train, val, test = (
    ParticleSystems('datasets', 'kuramoto', split, num_systems=NUM_SYSTEMS,
                    num_particles=10, transform=SplitTrajectory(49))
    for split in ('train', 'val', 'test'))

# %% [markdown]
# The recipe `laws` finds by itself that laws of first order predict held-out
# systems better than forces do, and ends with a check.

# %%
from pyg_fnri.training import Config, fit

config = Config.for_dataset(train, num_observed=49, recipe='laws')
module = fit(config, train, val, 'runs/kuramoto', overwrite=True)

# %%
from pyg_fnri.evaluation import law_curves
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy

batch = next(iter(SystemLoader(test, len(test))))
accuracy = EdgeAccuracy([2])
accuracy.update(refine(module.model, batch).edge_type, batch.edge_label)
print(f'{accuracy.compute().combined:.1%} of the edges are right')
curves = law_curves(module.model.decoder.layer, test)
print(curves.words)

# %% [markdown]
# The law that was found lies on the sine that was not told:

# %%
from matplotlib.figure import Figure
import numpy as np

figure = Figure(figsize=(7, 3), layout='constrained')
left, right = figure.subplots(1, 2)
theta = np.arctan2(test[0].x[..., 1].numpy(), test[0].x[..., 0].numpy())
left.plot(0.1 * np.arange(49), np.sin(theta).T, lw=1)
left.set(xlabel='time (s)', ylabel='sin θ', title='ten oscillators')
offset = curves.distance.numpy()
right.plot(offset, -curves.learned[0].numpy(), lw=4, alpha=0.6, label='found')
right.plot(offset, np.sin(offset), 'k--', lw=1, label='sin')
right.set(xlabel='offset of phases (rad)', ylabel='pull (rad/s)')
right.legend(frameon=False)
figure.savefig('kuramoto.png')  # Phases of ten oscillators, and the coupling found over the sine
