# %% [markdown]
# # A soccer match
#
# Players come and go in the broadcast picture. Their distances explain little of
# what they do.
#
# The package `kloppy` (extra `recordings`) reads a match from its own test files:
# the first half, 10 frames a second, 17,871 frames, 268 tracks, 7 to 22 players in
# view.

# %%
import os
from importlib.util import find_spec

import pandas as pd
from kloppy import skillcorner

folder = os.path.join(os.path.dirname(find_spec('kloppy').origin), 'tests',
                      'files', 'skillcorner_')
match = skillcorner.load(meta_data=f'{folder}match_data.json',
                         raw_data=f'{folder}structured_data.json',
                         coordinates='skillcorner')
table = pd.DataFrame(
    [(round(frame.timestamp.total_seconds(), 1), str(player),
      seen.coordinates.x, seen.coordinates.y)
     for frame in match.frames if frame.period.id == 1
     for player, seen in frame.players_data.items()
     if seen.coordinates is not None],
    columns=['time', 'particle', 'x', 'y'])
MINUTES = 45  # 5 in the tests
table = table[table.time < 60 * MINUTES]

# %% [markdown]
# Every other frame is kept. Windows of 30 frames, 6 s, hold the players who are in
# view throughout, where there are four or more. A warning counts the tracks and
# windows that are left out.

# %%
import pyg_fnri as pf

result = pf.infer(table, layers=[2], method='laws', window=30, every=2,
                  max_gap=2, min_particles=4)
print(result)
result.save('graphs')  # with report.html

# %% [markdown]
# ## What it means
#
# **Nothing that holds** was found. Players follow the ball and a plan, not each
# other's distance. Reading such files needs no code of your own, and the check
# keeps you from believing their graphs.

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(6, 4), layout='constrained')
axes = figure.subplots()
for _, track in table[table.time < 60].groupby('particle'):
    axes.plot(track.x, track.y, '.', ms=1.5)
axes.set(aspect='equal', xlabel='x (m)', ylabel='y (m)',
         title='the first minute in view')
figure.savefig('soccer.png')  # Tracks of the players in view in the first minute
