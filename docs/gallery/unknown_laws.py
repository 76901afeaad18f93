# %% [markdown]
# # Charges and springs of unknown law
#
# Nobody says how many kinds of interaction there are, nor what the forces look
# like. Both are found.
#
# The trajectories are the paper's. From them alone, `infer` chooses the number of
# layers by held-out frames, and reads off a law for each.

# %%
import pyg_fnri as pf
from pyg_fnri.datasets import ParticleSystems

NUM_SYSTEMS = (200, 1, 1)  # (40, 1, 1) in the tests
LAYERS = 'auto'  # [2, 2] in the tests
systems = ParticleSystems('datasets', 'springs_charges',
                          num_systems=NUM_SYSTEMS)
result = pf.infer(systems, layers=LAYERS)
print(result)

# %% [markdown]
# ## The laws in words
#
# A small library of formulas is fitted to each law. Digits in brackets are the
# standard error of the last ones. The true laws are -0.1 r and 0.2 / r².

# %%
for name, words in result.laws.words.items():
    print(f'{name}: {words}')
result.laws.plot().savefig('unknown_laws.png')  # Two laws that were found, with intervals and formulas

# %% [markdown]
# Laws are functions as well:

# %%
print(result.laws([0.5, 1.0, 2.0]))  # [num_laws, 3]
print(result.laws.standard_error.shape)
