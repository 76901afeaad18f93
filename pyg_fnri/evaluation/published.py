"""The paper's tables 1 to 3: means over 5 runs, accuracies in per cent, mean
squared errors in units of 1e-5 of min-max scaled positions and velocities."""
#: Table 1: data set -> row -> combined accuracy, then one per layer-graph.
ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    'springs_charges': {
        'random': (25.0, 50.0, 50.0),
        'nri (learned)': (89.1, 97.9, 91.0),
        'fnri (learned)': (94.0, 98.0, 95.8),
        'sfnri (learned)': (88.8, 97.6, 91.1),
        'nri (supervised)': (98.3, 98.6, 99.7),
        'fnri (supervised)': (98.3, 98.8, 99.4),
        'sfnri (supervised)': (98.0, 98.3, 99.6)
    },
    'springs_charges_fsprings': {
        'random': (12.5, 50.0, 50.0, 50.0),
        'nri (learned)': (57.9, 88.5, 87.3, 70.7),
        'fnri (learned)': (63.3, 86.9, 97.7, 69.2),
        'sfnri (learned)': (45.1, 90.0, 98.2, 52.4),
        'nri (supervised)': (80.9, 92.4, 99.0, 84.4),
        'fnri (supervised)': (81.8, 93.3, 99.3, 85.8),
        'sfnri (supervised)': (81.0, 92.9, 99.2, 85.2)
    }
}

#: The horizons of table 2, in steps.
HORIZONS = (1, 10, 20)

#: Table 2: data set -> row -> error at each horizon.
ROLLOUT_MSE: dict[str, dict[str, tuple[float, ...]]] = {
    'springs_charges': {
        'static': (19.4, 283.0, 783.0),
        'nri (learned)': (0.88, 4.05, 11.5),
        'fnri (learned)': (0.80, 3.54, 9.93),
        'sfnri (learned)': (1.03, 3.32, 9.68),
        'nri (true graph)': (0.85, 1.59, 3.20),
        'fnri (true graph)': (0.70, 1.30, 2.52),
        'sfnri (true graph)': (0.86, 1.32, 2.77)
    },
    'springs_charges_fsprings': {
        'static': (12.8, 274.0, 782.0),
        'nri (learned)': (0.95, 8.67, 29.1),
        'fnri (learned)': (0.81, 7.78, 26.8),
        'sfnri (learned)': (0.77, 5.69, 19.3),
        'nri (true graph)': (0.75, 1.55, 3.43),
        'fnri (true graph)': (0.51, 0.97, 2.44),
        'sfnri (true graph)': (0.56, 0.89, 2.28)
    }
}

#: Table 3: data set -> model -> number of parameters of encoder and decoder.
PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    'springs_charges': {
        'nri': (710_660, 406_020),
        'fnri': (710_660, 406_020),
        'sfnri': (710_146, 269_828)
    },
    'springs_charges_fsprings': {
        'nri': (711_688, 678_404),
        'fnri': (711_174, 542_212),
        'sfnri': (710_403, 337_924)
    }
}

#: Table 3: data set -> model -> K as printed there, (2, 2) for 2+2; of sfNRI
#: the number of its sigmoids, one for each layer of two types.
EDGE_TYPES: dict[str, dict[str, tuple[int, ...]]] = {
    'springs_charges': dict(nri=(4, ), fnri=(2, 2), sfnri=(2, )),
    'springs_charges_fsprings': dict(nri=(8, ), fnri=(2, 2, 2), sfnri=(3, ))
}
