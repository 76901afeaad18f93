"""Tables of systems whose particles move along parabolas."""
import numpy as np
import pandas as pd

SIZES = {'A': ['a', 'b', 'c'], 'B': ['b', 'c'], 'C': ['x', 'y', 'z', 'w']}
DT = 0.5


def position(number, particle, t):
    """A parabola, whose derivative second-order formulas give exactly."""
    return np.stack([number + t**2, particle * t - 1], axis=-1)


def velocity(number, particle, t):
    return np.stack([2 * t, particle + 0 * t], axis=-1)


def table(num_steps=8, sizes=SIZES):
    """Systems by name, with the names of their particles; rows in no order."""
    rows = []
    for number, (name, particles) in enumerate(sizes.items()):
        for particle, label in enumerate(sorted(particles)):
            for frame in range(num_steps):
                x, y = position(number, particle, DT * frame)
                rows.append((name, label, DT * frame, x, y))
    columns = ['system', 'particle', 'time', 'x', 'y']
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sample(frac=1, random_state=0)


def mass_of(number, particle):
    return 0.5 + number + 10 * particle


def weighed(num_steps=8, sizes=SIZES):
    """The table with masses, in two columns."""
    frame = table(num_steps, sizes)
    names = list(sizes)
    frame['m'] = [
        mass_of(names.index(system),
                sorted(sizes[system]).index(particle))
        for system, particle in zip(frame.system, frame.particle)
    ]
    return frame.assign(m2=2 * frame.m)


def masses(number, size):
    """Those of a system's particles, in the order of their names."""
    return [mass_of(number, particle) for particle in range(size)]
