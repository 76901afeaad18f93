# %% [markdown]
# # Your own table
#
# From a CSV file of positions to graphs, laws and a verdict, in one call.
#
# `datasets/example.csv` stands for data of your own. It has the columns
# `system`, `time`, `particle`, `x` and `y`: 100 systems of five particles,
# positions alone, rounded to a millimetre. Two kinds of springs act between some
# of the pairs. [What may my files hold?](../howto/files.md) has all that can be
# read.

# %%
import pandas as pd

table = pd.read_csv('datasets/example.csv')
NUM_SYSTEMS = 100  # 20 in the tests
table = table[table.system <= NUM_SYSTEMS]
print(table.head(3))

# %% [markdown]
# ## Infer
#
# We look for two layers of two types each, "no interaction" included. Leave out
# `layers`, and the number of layers is chosen by held-out frames.

# %%
import pyg_fnri as pf

result = pf.infer(table, layers=[2, 2])
print(result)

# %% [markdown]
# ## Read the check
#
# Laws that hold explain all but noise in systems that they were not fitted to.
# [Can I trust it?](../howto/trust.md) says more.

# %%
print(result.check)
for name, words in result.laws.words.items():
    print(f'{name}: {words}')
result.laws.plot().savefig('own_csv.png')  # The two laws that were found

# %% [markdown]
# ## Use the graph
#
# As a table, for NetworkX, or for PyG.

# %%
print(result.graph.head(4))
network = result.network()
data = result.data[0]
print(network, data, sep='\n')

# %% [markdown]
# ## Predict, report, save
#
# `pf.load` opens the folder again, and `infer` applies the same laws to other
# systems.

# %%
future = result.predict(20)  # a list of [5, 20, F] arrays
result.report('example.html')
result.save('example')
other = pf.load('example').infer(table[table.system <= 10])
print(len(other.graph), 'rows')

# %% [markdown]
# ## Compare with the truth
#
# Here, and only here, the truth is known. The accuracy is strict, up to the order
# of the layers.

# %%
import torch
from pyg_fnri.metrics import EdgeAccuracy

EDGE = ['system', 'sender', 'receiver']
truth = pd.read_csv('datasets/example_interactions.csv')
columns = [part.astype({'system': str}).pivot(index=EDGE, columns='layer',
                                              values='type')
           for part in (result.graph, truth)]
true = columns[1].reindex(columns[0].index).fillna(0)
accuracy = EdgeAccuracy([2, 2])
accuracy.update(*(torch.tensor(part.to_numpy(), dtype=torch.long)
                  for part in (columns[0], true)))
print(f'{accuracy.compute().combined:.1%} of the edges are right')
