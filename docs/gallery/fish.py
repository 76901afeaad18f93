# %% [markdown]
# # Fish: a verdict that says no
#
# 100 zebrafish in a dish. One law of distance does not explain them, and the
# check says so.
#
# The package `trajectorytools` (extra `recordings`) has 300 frames of 100
# juvenile fish; 5.8 % of the positions are missing.

# %%
import os
from importlib.util import find_spec

import numpy as np
import pandas as pd

folder = os.path.dirname(find_spec('trajectorytools').origin)
x = np.load(os.path.join(folder, 'data', 'test_trajectories.npy'))
time, number = np.indices(x.shape[:2]).reshape(2, -1)
table = pd.DataFrame({'time': time, 'particle': number, 'x': x[..., 0].ravel(),
                      'y': x[..., 1].ravel()}).dropna()
NUM_FISH = 100  # 8 in the tests
table = table[table.particle < NUM_FISH]

# %% [markdown]
# Gaps of at most five frames are filled. [My tracks have gaps](../howto/gaps.md)
# says how. Windows of 30 frames hold the fish that are seen throughout.

# %%
import pyg_fnri as pf

result = pf.infer(table, layers=[2], method='laws', window=30, max_gap=5)
print(result)
result.save('graphs')  # with report.html

# %% [markdown]
# ## What it means
#
# **Nothing that holds** was found. Laws and graphs are there all the same; they
# mean nothing. Fish turn after what they see, with a delay, and choose their
# speed. None of the [terms](../explanation/additive_model.md#terms) says that.
#
# An honest verdict is a result. Where laws do not hold, `method='networks'` finds
# graphs by networks; compare seeds before you believe them.

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(4.5, 4.2), layout='constrained')
axes = figure.subplots()
for track in x[:60].swapaxes(0, 1):
    axes.plot(*track.T, lw=0.8)
axes.set(aspect='equal', xlabel='x (pixels)', ylabel='y (pixels)',
         title='the first 60 frames')
figure.savefig('fish.png')  # Tracks of 100 fish in a dish
