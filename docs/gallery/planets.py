# %% [markdown]
# # Weigh the planets
#
# Ten bodies, 66 years, no equation given: the law of gravity and the masses of
# the planets follow from how they move.
#
# The package `de421` (extra `examples`) has the paths of the Sun and the planets
# as JPL computed them. We take positions and velocities alone, every four days.
# The true masses are in the same package; we look at them in the end only.
#
# ## Read the paths

# %%
import os
from importlib.util import find_spec

import numpy as np
from numpy.polynomial import chebyshev

NUM_FRAMES = 6_000  # 600 in the tests
INTERVAL = 4.0  # days
# Days from the first one of the files to 1950, and days of a file.
START, NUM_DAYS = 2433282.5 - 2414864.5, 8 * 13704
# Names, files, and names of true masses times the constant of gravity. Earth
# is the centre of mass of Earth and Moon.
BODIES = {
    'Sun': ('sun', 'GMS'), 'Mercury': ('mercury', 'GM1'),
    'Venus': ('venus', 'GM2'), 'Earth': ('earthmoon', 'GMB'),
    'Mars': ('mars', 'GM4'), 'Jupiter': ('jupiter', 'GM5'),
    'Saturn': ('saturn', 'GM6'), 'Uranus': ('uranus', 'GM7'),
    'Neptune': ('neptune', 'GM8'), 'Pluto': ('pluto', 'GM9')
}
folder = os.path.dirname(find_spec('de421').origin)
constants = {
    key.decode(): value
    for key, value in np.load(os.path.join(folder, 'constants.npy'))
}


def read_path(file):
    """Positions in km, velocities in km a day, [T, 6]."""
    series = np.load(os.path.join(folder, f'jpl-{file}.npy'))
    days = NUM_DAYS / len(series)  # of each of Chebyshev's series
    time = START + INTERVAL * np.arange(NUM_FRAMES)
    number = (time // days).astype(int)
    place = 2 * (time / days - number) - 1
    series = series[number].T  # [degree, 3, T]
    slope = chebyshev.chebder(series) * 2 / days
    return np.concatenate([chebyshev.chebval(place, part, tensor=False)
                           for part in (series, slope)]).T


# [10, T, 6]: astronomical units (AU), and AU a day.
x = np.stack([read_path(file) for file, _ in BODIES.values()]) / constants['AU']

# %% [markdown]
# ## Find one law and ten strengths
#
# `fit_strengths` looks for one law of distance and for how strongly each body
# acts on all others. In the fitted law, nothing says 1 / r²: it is a table.

# %%
import torch
from pyg_fnri.laws import best_formula, fit_strengths

found = fit_strengths(torch.from_numpy(x), INTERVAL)
names = list(BODIES)
print(f'All turn around {names[found.hub]}: if it alone acts, '
      f'{found.unexplained[found.hub]:.2%} of the accelerations are left.')
knots = found.law.knots
law = found.law(knots)[0]
print('The law, in AU and days:', best_formula(knots, law, found.covariance))

# %% [markdown]
# ## Compare with the truth
#
# Masses are in units of the Sun's. The column "in errors" is the difference over
# the standard error that the fit gives.

# %%
true = np.array([constants[key] for _, key in BODIES.values()])
gravity = true[found.hub]
true = true / gravity
mass, error = found.strength.numpy(), found.error.numpy()
print(f'{"":8}{"mass found":>14}{"true":>14}{"off, ppm":>10}{"in errors":>10}')
for row, name in enumerate(names):
    if row != found.hub:
        off = mass[row] - true[row]
        print(f'{name:8}{mass[row]:14.6g}{true[row]:14.6g}'
              f'{1e6 * off / true[row]:10.2f}{off / error[row]:10.1f}')

# %% [markdown]
# The law is not quite Newton's. Where the fit is most exact, between 1 and 2 AU,
# it is off by what general relativity adds, 3 G M / (c² r), the dotted line below.

# %%
from matplotlib.figure import Figure

r, pull = knots.numpy(), -law.numpy()
law_error = found.covariance.diagonal().sqrt().numpy()
LIGHT = 173.1446  # AU a day
planets = np.arange(len(names)) != found.hub

figure = Figure(figsize=(9, 5), layout='constrained')
axes = figure.subplots(2, 2, height_ratios=[3, 1.2], sharex='col')
(at_law, at_mass), (law_off, mass_off) = axes
at_law.plot(r, pull, lw=4, alpha=0.6, label='found')
at_law.plot(r, gravity / r**2, 'k--', lw=1, label='1 / r²')
law_off.plot(r, abs(pull * r**2 / gravity - 1), 'o', ms=3)
law_off.plot(r, 3 * gravity / LIGHT**2 / r, 'k:', lw=1, label='relativity')
law_off.fill_between(r, 1e-12, law_error / pull, color='0.88', lw=0,
                     label='standard error')
at_mass.plot(true[planets], mass[planets], 'C1o', label='found')
at_mass.plot(*2 * [np.sort(true[planets])], 'k--', lw=1, label='true')
for number, row in enumerate(true.argsort()[:-1]):
    at_mass.annotate(f'  {names[row]}  ', (true[row], mass[row]), fontsize=8,
                     ha=['right', 'left'][number % 2],
                     va=['bottom', 'top'][number % 2])
mass_off.plot(true[planets], abs(mass / true - 1)[planets], 'C1o', ms=4)
mass_off.vlines(true[planets], 1e-9, (error / true)[planets], color='0.88',
                lw=7, zorder=0, label='standard error')
law_off.set(xlabel='distance (AU)', ylabel='relative error', ylim=(1e-11, 1e-4))
mass_off.set(xlabel='true mass (Suns)', ylim=(1e-9, 1e-1))
at_law.set(ylabel='pull of the Sun (AU/day²)')
at_mass.set(ylabel='mass found (Suns)', xlim=(5e-10, 1e-2))
for ax in axes.flat:
    ax.set(xscale='log', yscale='log')
    ax.spines[['top', 'right']].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
figure.savefig('planets.png')  # The law of gravity and the masses of the planets as found, over the true ones
