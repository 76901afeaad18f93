# %% [markdown]
# # The paper's systems: springs and charges
#
# Two kinds of interaction, hidden in one motion. Networks find nearly all of
# them, force laws the laws as well.
#
# Five particles move in a box. Some pairs are connected by springs, some repel
# each other by charges, some do both. We see the trajectories alone. Factorised
# neural relational inference (fNRI) infers one graph for each kind of
# interaction. [The paper in two pages](../explanation/paper.md) says how.
#
# ## Load
#
# The data set is simulated when it is first asked for. Without `num_systems`,
# it has the paper's 50,000 training systems. The encoder sees frames 0 to 48,
# the decoder has to predict frames 50 to 98.

# %%
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.transforms import SplitTrajectory

NUM_SYSTEMS = (10_000, 500, 1_000)  # (64, 32, 32) in the tests
train, val, test = (
    ParticleSystems('datasets', 'springs_charges', split,
                    num_systems=NUM_SYSTEMS, transform=SplitTrajectory(49))
    for split in ('train', 'val', 'test'))
print(train[0])

# %% [markdown]
# ## Train
#
# A `Config` names a model and a recipe. `fit` trains it and writes checkpoints.
# No label is used: `edge_label` serves to measure accuracies. The recipe
# `quick` takes minutes; [Which recipe?](../howto/recipe.md) compares all three.

# %%
from pyg_fnri.training import Config, fit

NUM_STEPS = 3_000  # 20 in the tests
config = Config.for_dataset(train, num_observed=49, model='fnri',
                            recipe='quick', options={'max_steps': NUM_STEPS})
module = fit(config, train, val, 'runs/springs_charges', overwrite=True)
model = module.model  # or load_checkpoint('runs/springs_charges/best.ckpt')

# %% [markdown]
# ## Infer
#
# The model gives types, probabilities and predictions, in physical units. The
# accuracy is [strict](../explanation/strict_metric.md): one relabelling serves
# all systems.

# %%
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy

batch = next(iter(SystemLoader(test, len(test))))
edge_type = model.predict(batch)  # [num_edges, 2]
spring, charge = model.posterior(batch)  # [num_edges, 2] each
future = model.predict_trajectory(batch, num_steps=49)  # [num_nodes, 49, 4]

accuracy = EdgeAccuracy([2, 2])
accuracy.update(edge_type, batch.edge_label)
result = accuracy.compute()
print(f'{result.combined:.1%} of the edges are right in both layers; springs '
      f'{result.layers[0]:.1%}, charges {result.layers[1]:.1%}')

# %% [markdown]
# ## Find the force laws
#
# A table of the force at 26 distances replaces each message network. Laws and
# graphs are then fitted to each other, from scratch. The laws know more about
# the world than networks do: a force depends on the distance of a pair alone.
# [What each recipe assumes](../explanation/recipes.md) lists it.

# %%
import torch
from pyg_fnri.inference import refine
from pyg_fnri.laws import check_laws, discover_force_laws

NUM_LAWFUL = 500  # 32 in the tests
lawful = module.with_laws(interval=0.1, half_width=5.0).model
systems = next(iter(SystemLoader(train, NUM_LAWFUL)))
discover_force_laws(lawful, systems, torch.Generator().manual_seed(0))
graph = refine(lawful, batch)

accuracy.reset()
accuracy.update(graph.edge_type, batch.edge_label)
print(f'{accuracy.compute().combined:.1%} of the edges are right in both layers')
print(check_laws(lawful, next(iter(SystemLoader(val, 100)))))

# %% [markdown]
# ## Look
#
# The laws as learned are solid, the true ones dashed. Below them is how often
# pairs were seen at each distance.

# %%
from pyg_fnri.evaluation import law_curves
from pyg_fnri.plot import plot_laws, plot_multiplex

curves = law_curves(lawful.decoder.layer, test,
                    accuracy.compute().relabelling)
plot_laws(curves.distance, curves.learned, curves.true, names=curves.names,
          seen=curves.seen, errors=curves.error).savefig('laws.png')  # The force laws of springs and charges, learned over true
for name, words in curves.words.items():
    print(f'{name}: {words}')

# %% [markdown]
# One system, a panel for each layer of its graph:

# %%
data = test[1]
types = refine(lawful, data).edge_type
plot_multiplex(data.edge_index, types, data.edge_label,
               names=test.names).savefig('graph.png')  # Springs and charges of one system, inferred and true

# %% [markdown]
# ## Take the graph elsewhere

# %%
from pyg_fnri.convert import to_networkx, to_pandas

network = to_networkx(data, types, names=test.names, undirected=True)
table = to_pandas(data, types, names=test.names)
print(table.head(4))
