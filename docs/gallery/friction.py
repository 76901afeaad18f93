# %% [markdown]
# # Friction, a magnetic field, masses
#
# Central forces are not all there is. The search adds the terms that the motion
# asks for, with error bars.
#
# ## A system that breaks the assumptions
#
# Springs and charges act as in the paper. But all particles also move through a
# liquid and a magnetic field, and some are heavier than others: none of these
# is a force along the line of a pair. We simulate it by hand, as data of your
# own would come: positions and velocities, without labels.

# %%
import numpy as np

NUM_SYSTEMS = 300  # 24 in the tests
FRICTION, TURNING = 0.2, 0.3
rng = np.random.default_rng(0)
shape = (NUM_SYSTEMS, 5, 5)
graph = np.stack([np.tril(rng.random(shape) < 0.5, -1) for _ in range(2)])
spring, charge = graph | graph.swapaxes(-1, -2)
mass = rng.uniform(0.5, 2.0, (NUM_SYSTEMS, 5, 1))


def acceleration(position, velocity):
    offset = position[:, :, None] - position[:, None]  # from j to i
    distance = np.linalg.norm(offset, axis=-1)[..., None] + 1e-9
    force = -0.1 * spring[..., None] * distance
    force = force + 0.2 * charge[..., None] / (distance**2 + 0.01)
    out = (force * offset / distance).sum(2) / mass
    turned = velocity[..., ::-1] * [-1, 1]
    return out - FRICTION * velocity + TURNING * turned


position = rng.normal(0, 1, (NUM_SYSTEMS, 5, 2))
velocity = rng.normal(0, 0.5, (NUM_SYSTEMS, 5, 2))
frames = []
for step in range(98 * 20 + 1):  # Runge-Kutta of second order, 5 ms
    if step % 20 == 0:
        frames.append(np.concatenate([position, velocity], axis=-1))
    a = acceleration(position, velocity)
    middle = velocity + 0.0025 * a
    a = acceleration(position + 0.0025 * velocity, middle)
    position, velocity = position + 0.005 * middle, velocity + 0.005 * a
x = np.stack(frames, axis=2)  # [NUM_SYSTEMS, 5, 99, 4]

# %% [markdown]
# ## Find laws and terms
#
# The search starts from central laws. As long as held-out systems get clearly
# more likely, it adds one more term. [The additive
# model](../explanation/additive_model.md) lists all.

# %%
import torch
from torch_geometric.data import Batch
from pyg_fnri.data import from_trajectory
from pyg_fnri.laws import check_laws, discover_force_laws
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

split = SplitTrajectory(49)
systems = [split(from_trajectory(system)) for system in x]
held_out = NUM_SYSTEMS // 3
train = Batch.from_data_list(systems[held_out:])
test = Batch.from_data_list(systems[:held_out])

config = Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
                recipe='laws')
module = build_module(config)
module.fit_units(train.x)
model = module.with_laws(interval=0.1).model
found = discover_force_laws(model, train, torch.Generator().manual_seed(0))
for step in found.steps:
    print(f'{step.term}: {step.lead.mean:.2f} ± {step.lead.error:.2f} nat a '
          f'number, {"kept" if step.kept else "dropped"}')

# %% [markdown]
# The lead is by how much held-out systems are more likely with the term. Central
# laws alone lead nowhere here, so several terms are tried at once, and what is of
# no use is dropped.
#
# ## Read them

# %%
layer = model.decoder.layer
errors = layer.coefficient_errors()
for term, value in layer.node_terms():
    for label, v, e in zip(term.labels(['x', 'y']), value, errors[term.name]):
        print(f'{term.name}: {v:.6f} ± {e:.6f} {label}')
print(f'true: friction -{FRICTION}, turning {TURNING}')

# %% [markdown]
# Graphs of systems that were not fitted to come with their masses, in units of
# a typical one:

# %%
from pyg_fnri.inference import refine

graph_found = refine(model, test)
print(check_laws(model, test))
if graph_found.mass is not None:
    true = mass[:held_out].ravel()
    found_mass = graph_found.mass.numpy()
    found_mass = found_mass * (true / found_mass).mean()  # in kg
    print(f'masses are {np.std(found_mass / true):.2%} off')

    from matplotlib.figure import Figure
    figure = Figure(figsize=(4, 3.4), layout='constrained')
    axes = figure.subplots()
    axes.plot(true, found_mass, '.', ms=4, alpha=0.5)
    axes.plot([0.5, 2], [0.5, 2], 'k--', lw=1)
    axes.set(xlabel='true mass (kg)', ylabel='mass found')
    figure.savefig('friction.png')  # Masses of particles as found, over the true ones
