"""Files as the world has them: read right, or refused in one sentence, or read
with a warning; never wrong without a word."""
import gzip
import warnings

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import TrajectoryTable

STEP, NUM_FRAMES, NAMES = 0.1, 24, [*'abcdefg']


def tracks(num_frames=NUM_FRAMES):
    """Smooth paths of seven particles, `[N, T, 2]`, in three decimals."""
    t = STEP * np.arange(num_frames)
    k = np.arange(len(NAMES))[:, None]
    paths = 3 * np.sin(7.1 * k + [[0.0]]) + np.sin((1 + k / 5) * t + k)
    return np.stack([paths, np.cos(3.3 * k) + t * np.sin(k)], -1).round(3)


X = tracks()
TIME, PLACE = np.meshgrid(np.arange(NUM_FRAMES), np.arange(len(NAMES)))
FRAME = pd.DataFrame({
    'time': (STEP * TIME.ravel()).round(3),
    'particle': np.array(NAMES)[PLACE.ravel()],
    'x': X[..., 0].ravel(),
    'y': X[..., 1].ravel()
})
SPEED = np.gradient(X, STEP, axis=1, edge_order=2)
BOTH = np.concatenate([X, SPEED], -1)
MOVING = FRAME.assign(vx=SPEED[..., 0].ravel(), vy=SPEED[..., 1].ravel())
COUNTED = FRAME.assign(time=TIME.ravel())
CLOCK = pd.Timestamp('2024-05-31 23:59:59') + pd.to_timedelta(FRAME.time, 's')
UNIT = np.radians(6_371_009)
EARTH = FRAME.assign(lat=47 + FRAME.y / UNIT,
                     lon=8 + FRAME.x / UNIT / np.cos(np.radians(47)))
EARTH = EARTH.drop(columns=['x', 'y'])
ARRAY = dict(position=[0, 1], time_step=STEP)
GAPS = FRAME[(FRAME.particle != 'c') | (FRAME.time < 0.35) |
             (FRAME.time > 0.65)]
GONE = FRAME[(FRAME.particle != 'c') | (FRAME.time < 1.15)]


def text(name, frame=FRAME, **options):
    def write(folder):
        path = folder / name
        frame.to_csv(path, index=False, **options)
        return str(path)

    return write


def array(value, name='x.npy'):
    def write(folder):
        path = str(folder / name)
        np.savez(path, **value) if isinstance(value, dict) else np.save(
            path, value)
        return path

    return write


def deeplabcut(animals):
    """Header rows as DeepLabCut writes them, a frame in each row."""
    def write(folder):
        rows = [['scorer'], ['individuals'], ['bodyparts'], ['coords']]
        columns = []
        for number, name in enumerate(NAMES):
            who, part = (name, 'nose') if animals else ('one', name)
            for axis, coordinate in enumerate(['x', 'y', 'likelihood']):
                for row, cell in zip(rows, ['net', who, part, coordinate]):
                    row.append(cell)
                columns.append(X[number, :,
                                 axis] if axis < 2 else 0 * X[0, :, 0] + 0.9)
        if not animals:
            del rows[1]
        body = [[str(t), *map(str, row)]
                for t, row in enumerate(np.stack(columns, -1))]
        path = folder / 'dlc.csv'
        path.write_text('\n'.join(','.join(row) for row in rows + body))
        return str(path)

    return write


def shuffled(frame):
    return frame.sample(frac=1, random_state=0)


def zipped(folder):
    path = folder / 'x.csv.gz'
    with gzip.open(path, 'wt') as file:
        FRAME.to_csv(file, index=False, sep=';')
    return str(path)


def parquet(folder):
    FRAME.to_parquet(folder / 'x.parquet')
    return str(folder / 'x.parquet')


def big_endian(frame):
    return pd.DataFrame({
        name:
        column.to_numpy().astype(column.dtype.newbyteorder('>'))
        if column.dtype.kind in 'fi' else column
        for name, column in frame.items()
    })


RIGHT = {
    'commas': (text('x.csv'), {}),
    'gzip and semicolons': (zipped, {}),
    'parquet': (parquet, {}),
    'decimal commas': (text('x.csv', sep=';', decimal=','), {}),
    'semicolons and points': (text('x.csv', sep=';'), {}),
    'tabs': (text('x.tsv', sep='\t'), {}),
    'tabs in txt': (text('x.txt', sep='\t'), {}),
    'tabs and decimal commas': (text('x.txt', sep='\t', decimal=','), {}),
    'any order': (text('x.csv', shuffled(FRAME)), {}),
    'more columns': (text('x.csv', FRAME.assign(note='n', area=3)), {}),
    'other names': (text('x.csv', FRAME.rename(columns=str.upper)),
                    dict(time='TIME', particle='PARTICLE',
                         position=['X', 'Y'])),
    'frame numbers': (text('x.csv', COUNTED), dict(time_step=STEP)),
    'frame numbers from 1': (text('x.csv', COUNTED.assign(
        time=COUNTED.time + 1)), dict(time_step=STEP)),
    'frames of 60 s': (text('x.csv', COUNTED), dict(time_step=60 * STEP)),
    'dates': (text('x.csv', FRAME.assign(time=CLOCK)), {}),
    'date and time': (text('x.csv', FRAME.assign(
        day=CLOCK.dt.strftime('%Y-%m-%d'),
        hour=CLOCK.dt.strftime('%H:%M:%S.%f')).drop(columns='time')),
        dict(time=['day', 'hour'])),
    'milliseconds': (text('x.csv', FRAME.assign(time=1000 * FRAME.time)), {}),
    'velocities': (text('x.csv', MOVING[[*MOVING][::-1]]), {}),
    'chain and residue': (text('x.csv', FRAME.assign(
        chain='A', residue=FRAME.particle).drop(columns='particle')),
        dict(particle=['chain', 'residue'])),
    'a short gap': (text('x.csv', FRAME.drop(index=[30])), dict(max_gap=1)),
    'degrees': (text('x.csv', EARTH), dict(project=True)),
    'degrees, other order': (text('x.csv', EARTH),
                             dict(project=True, position=['lon', 'lat'])),
    'DeepLabCut, one animal': (deeplabcut(False), dict(time_step=STEP)),
    'DeepLabCut, animals': (deeplabcut(True), dict(time_step=STEP)),
    'array': (array(X), ARRAY),
    'array of systems': (array(X[None]), ARRAY),
    'array, velocities': (array(BOTH), dict(time_step=STEP)),
    'time first': (array(X.swapaxes(0, 1)), dict(axes='TNF', **ARRAY)),
    'time first, D': (array(X.swapaxes(0, 1)), dict(axes='tnd', **ARRAY)),
    'time first, systems': (array(X.swapaxes(0, 1)[None]),
                            dict(axes='STNF', **ARRAY)),
    'features first': (array(np.moveaxis(X, -1, 0)), dict(axes='FNT', **ARRAY)),
    'named x': (array(dict(x=X[None], label=np.arange(3)), 'x.npz'), ARRAY),
    'big-endian array': (array(X.astype('>f8')), ARRAY),
    'single precision': (array(X.astype('f4')), ARRAY),
    'a table': (lambda folder: FRAME, {}),
    'a big-endian table': (lambda folder: big_endian(FRAME), {}),
    'an array, masked': (lambda folder: np.ma.masked_array(X, False), ARRAY),
    'every frame': (text('x.csv'), dict(every=1))
}  # yapf: disable


@pytest.mark.parametrize('name', RIGHT)
def test_read_right(tmp_path, name):
    write, options = RIGHT[name]
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.filterwarnings('ignore', 'Filled')
        dataset = TrajectoryTable(str(tmp_path), write(tmp_path), **options)
    x = dataset[0].x.double().numpy()
    assert len(dataset) == 1 and x.shape == (7, NUM_FRAMES, 4)
    middle = 0.0 if not options.get('project') else X.mean((0, 1))
    factor = {'milliseconds': 1000, 'frames of 60 s': 60}.get(name, 1)
    step = factor * STEP
    np.testing.assert_allclose(x[..., :2], X - middle,
                               atol=1.5e-2 if 'gap' in name else 2e-3)
    np.testing.assert_allclose(x[..., 2:] * step, SPEED * STEP, atol=1e-2)
    assert dataset.time_step is None or dataset.time_step == pytest.approx(
        step, rel=1e-6)


def test_names_stay_as_they_are(tmp_path):
    names = [f'{number:03d}' for number in range(7)]
    frame = FRAME.assign(particle=np.array(names)[PLACE.ravel()])
    path = text('x.csv', frame)(tmp_path)
    assert TrajectoryTable(str(tmp_path), path).particle_names == [names]
    frame = frame.assign(chain='B')
    path = text('y.csv', frame)(tmp_path)
    dataset = TrajectoryTable(str(tmp_path), path,
                              particle=('chain', 'particle'))
    assert dataset.particle_names[0][:2] == ['B:000', 'B:001']


def test_features_that_are_no_velocities_are_not_compared(tmp_path):
    for position in ('x', ['x', 'y']):
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            dataset = TrajectoryTable(str(tmp_path), FRAME, position=position,
                                      velocity=())
        found = dataset[0].x.double().numpy()
        np.testing.assert_allclose(found, X[..., :len(position)], atol=1e-6)


def test_every_other_frame(tmp_path):
    dataset = TrajectoryTable(str(tmp_path), FRAME, every=3)
    np.testing.assert_allclose(dataset[0].x[..., :2], X[:, ::3], atol=1e-6)
    assert dataset.time_step == pytest.approx(3 * STEP)
    np.testing.assert_allclose(dataset[0].x[:, 1:-1, 2:],
                               (X[:, 6::3] - X[:, :-6:3]) / (6 * STEP),
                               atol=1e-4)


REFUSED = {
    'time first': (array(tracks(99).swapaxes(0, 1)), ARRAY,
                   r'\[99, 7, 2\].*99 particles.*\[7, 99, 2\].*TNF'),
    'time first, systems': (array(tracks(99).swapaxes(0, 1)[None]), ARRAY,
                            r'\[1, 99, 7, 2\].*STNF'),
    'few times first': (array(X[:, :5].swapaxes(0, 1)), ARRAY, 'TNF'),
    'hours': (text('x.csv', FRAME.assign(time='12:00:01')), {},
              "'time' must hold numbers, or dates"),
    'degrees of a collar': (text('x.csv', EARTH.rename(
        columns=dict(lat='GPS_Lat', lon='GPS_Lon'))), {}, 'project=True'),
    'time first, velocities': (array(BOTH.swapaxes(0, 1)), {}, 'TNF'),
    'axes': (array(X), dict(axes='NTX', **ARRAY), 'axes is'),
    'degrees': (text('x.csv', EARTH), {}, 'longitude.*project=True'),
    'degrees by another name': (text('x.csv', EARTH.rename(
        columns=dict(lat='y', lon='x'))), {}, 'project=False'),
    'a gap': (text('x.csv', GAPS), {}, "frame 4 of particle 'c'.*max_gap=3"),
    'a masked gap': (lambda folder: np.ma.masked_greater(
        np.where(np.arange(24)[:, None] == 5, 999, X), 900), ARRAY,
        'frame 5 of particle 0'),
    'a track that ends': (text('x.csv', GONE), {}, "'c'.*window=NUMBER"),
    'still velocities': (text('x.csv', MOVING.assign(vx=1.0, vy=2.0)), {},
                         'never change'),
    'twice': (text('x.csv', pd.concat([FRAME, FRAME.iloc[[30]]])), {},
              'Row 168 .*same particle'),
    'no such column': (text('x.csv'), dict(particle='track'), "'track'"),
    'no such columns': (text('x.csv'), dict(particle=('chain', 'residue')),
                        "'chain'"),
    'unequal steps': (text('x.csv', FRAME.assign(
        time=FRAME.time + 0.03 * (TIME.ravel() == 9))), {},
        'row 9 is 0.13, and 0.1'),
    'days as numbers': (text('x.csv', FRAME.assign(
        time=20240120 + TIME.ravel() + 69 * (TIME.ravel() > 11))), {},
        '20240120 look like dates'),
    'minutes as numbers': (lambda folder: FRAME.assign(
        time=202401312350 + TIME.ravel() + 697640 * (TIME.ravel() > 9)), {},
        'look like dates'),
    'a word': (text('x.csv', FRAME.replace({'x': {FRAME.x[13]: 'here'}})), {},
               "'x' must hold numbers.*position 13"),
    'ends early': (array(np.zeros((0, 5, 4))), {}, ''),
    'pickled': (array(np.array([{}, 1], dtype=object)), {}, 'Cannot read'),
    'another kind': (text('x.xlsx'), {}, 'unknown kind'),
    'every': (text('x.csv'), dict(every=0), 'every must be'),
    'no time at all': (text('x.csv'), dict(time_step=0), 'above 0'),
    'one velocity': (text('x.csv', MOVING),
                     dict(position=['x', 'y'], velocity=['vx']),
                     'needs its velocity')
}  # yapf: disable


@pytest.mark.parametrize('name', REFUSED)
def test_refused(tmp_path, name):
    write, options, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        TrajectoryTable(str(tmp_path), write(tmp_path), **options)


TOLD = {
    'velocities in another unit': (text('x.csv', MOVING.assign(
        vx=3 * MOVING.vx, vy=3 * MOVING.vy)), {}, 'step were 0.033'),
    'velocities of others': (text('x.csv', MOVING.assign(
        vx=-MOVING.vx, vy=MOVING.vy)), {}, 'Positions move at'),
    'brightness': (text('x.csv', FRAME.assign(mass=900.0)), {},
                   'mass is not read'),
    'gaps filled': (text('x.csv', GAPS), dict(max_gap=3), 'Filled 3 of 168'),
    'tracks that end': (text('x.csv', GONE), dict(window=8),
                        '3 windows .* 6.3 in the mean; 0 of 7 tracks'),
    'few at a time': (text('x.csv', GONE), dict(window=8, min_particles=7),
                      '1 windows .* and 2 windows with fewer than 7')
}  # yapf: disable


@pytest.mark.parametrize('name', TOLD)
def test_told(tmp_path, name):
    write, options, message = TOLD[name]
    with pytest.warns(UserWarning, match=message):
        dataset = TrajectoryTable(str(tmp_path), write(tmp_path), **options)
    assert bool(dataset._data.x.isfinite().all())


def test_arrays_of_single_systems():
    long = np.concatenate([tracks(99), 0 * tracks(99)], -1)
    with pytest.raises(ValueError, match='99 particles.*TNF'):
        from_trajectory(long.swapaxes(0, 1))
    first = from_trajectory(long.swapaxes(0, 1), axes='TNF')
    np.testing.assert_array_equal(first.x, from_trajectory(long).x)
    assert from_trajectory(long, axes='NTF').x.size() == (7, 99, 4)


def test_one_recording_is_cut_without_being_told(tmp_path):
    frame = FRAME[FRAME.time < 2]
    for split, number in (('train', 6), ('val', 2), ('test', 2)):
        dataset = TrajectoryTable(
            str(tmp_path),
            pd.concat(
                [frame.assign(time=frame.time + 2 * k) for k in range(10)]),
            split)
        assert len(dataset) == number and dataset[0].x.size(1) == 20


def test_data_sets_of_xarray(tmp_path):
    xarray = pytest.importorskip('xarray')
    parts = np.stack([X, X + 0.2], axis=-1)  # [N, T, D, keypoints].
    position = xarray.DataArray(
        parts.transpose(1, 2, 3, 0),
        coords=dict(time=STEP * np.arange(NUM_FRAMES), space=['x', 'y'],
                    keypoints=['nose', 'tail'], individuals=NAMES),
        dims=('time', 'space', 'keypoints', 'individuals'))
    for options, offset in (({}, 0.1), (dict(keypoint='tail'), 0.2)):
        dataset = TrajectoryTable.from_xarray(
            str(tmp_path), xarray.Dataset(dict(position=position)), **options)
        np.testing.assert_allclose(dataset[0].x[..., :2], X + offset, atol=1e-5)
        assert dataset.particle_names == [NAMES]
        assert dataset.time_step == pytest.approx(STEP)
    # Missing positions are those of animals that are not there.
    position[:4, :, :, 2] = np.nan
    with pytest.warns(UserWarning, match='come and go'):
        dataset = TrajectoryTable.from_xarray(
            str(tmp_path), xarray.Dataset(dict(position=position)), window=4)
    assert [data.num_nodes for data in dataset] == [6, 7, 7, 7, 7, 7]
