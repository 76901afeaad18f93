"""Weigh the planets by nothing but how they move.

    python scripts/examples/planets.py

The package `de421` has the paths of the Sun and the planets as JPL computed
them. From positions and velocities alone, every four days for 66 years, one law
of distance and the strength of each body are found: the law of gravity, and
masses in units of the Sun's. The true ones are looked at in the end only. What
the law is off Newton's is the size of general relativity's, 3 G M / (c^2 r).
"""
import argparse
import os
from importlib.util import find_spec
from typing import Optional

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial import chebyshev

from pyg_fnri.laws import Strengths, best_formula, fit_strengths
from pyg_fnri.laws.formulas import with_error
from pyg_fnri.plot.style import (COLORS, DASHES, INK, add_legend, label,
                                 name_layer, pale_ticks)

#: Names, files, and true masses times the constant of gravity. Earth is the
#: centre of mass of Earth and Moon.
BODIES = [('Sun', 'sun', 'GMS'), ('Mercury', 'mercury', 'GM1'),
          ('Venus', 'venus', 'GM2'), ('Earth', 'earthmoon', 'GMB'),
          ('Mars', 'mars', 'GM4'), ('Jupiter', 'jupiter', 'GM5'),
          ('Saturn', 'saturn', 'GM6'), ('Uranus', 'uranus', 'GM7'),
          ('Neptune', 'neptune', 'GM8'), ('Pluto', 'pluto', 'GM9')]
#: Julian dates of the files' first day and of 1950, and days of a file.
FIRST_DAY, START, NUM_DAYS = 2414864.5, 2433282.5, 8 * 13704
INTERVAL, NUM_FRAMES = 4.0, 6000
#: The speed of light in AU a day.
LIGHT = 173.1446


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='runs/planets', metavar='DIR')
    args = parser.parse_args(argv)
    folder = os.path.dirname(find_spec('de421').origin)
    constants = {
        key.decode(): value
        for key, value in np.load(os.path.join(folder, 'constants.npy'))
    }
    x = np.stack([
        read_path(os.path.join(folder, f'jpl-{file}.npy')) / constants['AU']
        for _, file, _ in BODIES
    ])
    found = fit_strengths(torch.from_numpy(x), INTERVAL)
    gravity = np.array([constants[key] for *_, key in BODIES])
    true = gravity / gravity[found.hub]
    report(found, true)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, 'planets.png')
    draw(found, true, gravity[found.hub], x).savefig(path)
    print(path)


def read_path(path: str) -> np.ndarray:
    """Positions in km, velocities in km a day, :obj:`[T, 6]`."""
    series = np.load(path)  # Chebyshev's, [sets, 3, degree].
    days = NUM_DAYS / len(series)
    time = START - FIRST_DAY + INTERVAL * np.arange(NUM_FRAMES)
    number = (time // days).astype(int)
    place = 2 * (time / days - number) - 1
    series = series[number].T  # [degree, 3, T]
    return np.concatenate([
        chebyshev.chebval(place, series, tensor=False),
        chebyshev.chebval(place, chebyshev.chebder(series), tensor=False) * 2 /
        days
    ]).T


def report(found: Strengths, true: np.ndarray) -> None:
    names = [name for name, *_ in BODIES]
    mass, error = found.strength.numpy(), found.error.numpy()
    left, star = found.unexplained, found.hub
    second, next_most = int(left.argsort()[1]), abs(mass).argsort()[-2]
    print(
        f'If {names[star]} alone acts, {left[star]:.2%} of the accelerations '
        f'are left; of the others alone, {names[second]} leaves least: '
        f'{left[second]:.0%}.\nNext to {names[star]}, {names[next_most]} pulls '
        f'most: {mass[next_most] / mass[star]:.4%} as strongly.')
    knots = found.law.knots
    law = best_formula(knots, found.law(knots)[0], found.covariance)
    print(f'The law, in AU and days: {law}\n\n{"":8}{"mass found":>20}'
          f'{"true":>16}{"off, ppm":>12}{"in errors":>12}')
    for row, off in enumerate(mass - true):
        if row != star:
            print(f'{names[row]:8}{with_error(mass[row], error[row]):>20}'
                  f'{true[row]:16.8g}{1e6 * off / true[row]:12.2f}'
                  f'{off / error[row]:12.1f}')


def draw(found: Strengths, true: np.ndarray, gravity: float,
         x: np.ndarray) -> Figure:
    """Above, the law and the masses; below, how far they are off the truth."""
    figure = Figure(figsize=(10, 5.6), dpi=150, layout='constrained')
    axes = figure.subplots(2, 2, height_ratios=[3, 1.1], sharex='col')
    for ax in axes.flat:
        ax.set(xscale='log', yscale='log')
        ax.spines[['top', 'right']].set_visible(False)
        pale_ticks(ax)
        ax.minorticks_off()
    (law, mass), (law_off, mass_off) = axes
    r = found.law.knots.numpy()
    f = -found.law(found.law.knots)[0].numpy()
    error = found.covariance.diagonal().sqrt().numpy()
    planets = np.arange(len(BODIES)) != found.hub
    names = np.array([name for name, *_ in BODIES])[planets]
    apart = (x[planets] - x[found.hub])[..., :3]
    far = np.linalg.norm(apart, axis=-1).mean(-1)
    law.plot(r, f, color=COLORS[0], lw=4, alpha=0.65)
    law.plot(r, gravity / r**2, color=INK, lw=1.3, ls=DASHES)
    draw_bodies(law, far, gravity / far**2, names, 1, COLORS[0])
    draw_off(law_off, r, f * r**2 / gravity - 1, error / f, COLORS[0])
    law_off.plot(r, 3 * gravity / LIGHT**2 / r, color=INK, lw=1, ls=':')
    law_off.annotate('relativity', (r[1], 3 * gravity / LIGHT**2 / r[1]),
                     (0, -13), textcoords='offset points', fontsize=8,
                     color=INK)
    found_mass, error, true = (part[planets]
                               for part in (found.strength.numpy(),
                                            found.error.numpy(), true))
    mass.plot(*2 * [np.sort(true)], color=INK, lw=1.3, ls=DASHES)
    mass.errorbar(true, found_mass, 2 * error, fmt='none', color=COLORS[1])
    draw_bodies(mass, true, found_mass, names, -1, COLORS[1])
    draw_off(mass_off, true, found_mass / true - 1, error / true, COLORS[1])
    name_layer(law, 'the law', COLORS[0])
    name_layer(mass, 'the masses', COLORS[1])
    label(law, y='pull of the Sun (AU/day²)')
    label(mass, y='mass found (Suns)')
    label(law_off, 'distance (AU)', 'relative error')
    label(mass_off, 'true mass (Suns)')
    add_legend(
        figure, {
            'found': dict(color=INK, lw=4, alpha=0.65),
            'true': dict(color=INK, lw=1.3, ls=DASHES),
            'off the truth': dict(color=INK, marker='o', ms=4, lw=0),
            'standard error': dict(color='#DFDFDF', lw=8)
        })
    return figure


def draw_bodies(ax: Axes, at: np.ndarray, height: np.ndarray, names: np.ndarray,
                slope: int, color: str) -> None:
    """Dots with names, on both sides of a line in turn."""
    ax.plot(at, height, 'o', ms=7, mec='w', color=color, zorder=5)
    for number, row in enumerate(at.argsort()):
        up = slope - 2 * slope * (number % 2)
        ax.annotate(names[row], (at[row], height[row]),
                    (up * slope * 8, up * 6), textcoords='offset points',
                    ha='left' if up * slope > 0 else 'right', va='center',
                    fontsize=9, color=INK)


def draw_off(ax: Axes, at: np.ndarray, off: np.ndarray, error: np.ndarray,
             color: str) -> None:
    ax.plot(at, abs(off), 'o', ms=4, color=color)
    low, high = np.quantile(np.concatenate([abs(off), error]), [0., 1.])
    ax.set_ylim(low / 3, 3 * high)
    ax.vlines(at, low / 3, error, color='#DFDFDF', lw=7, zorder=0)


if __name__ == '__main__':
    main()
