import threading
import time

import pytest

from pyg_fnri.simulation.threads import in_threads


@pytest.mark.parametrize('num_threads', [1, 3, None])
def test_each_start_is_called_once(num_threads):
    called = []
    in_threads(called.append, range(0, 20, 4), num_threads, False)
    assert sorted(called) == [0, 4, 8, 12, 16]


def test_calls_run_beside_each_other():
    # Passes only once two threads wait at it together.
    barrier = threading.Barrier(2, timeout=10)
    in_threads(lambda start: barrier.wait(), range(2), 2, False)


def test_an_error_ends_the_work():
    called = []

    def fail(start):
        called.append(start)
        if start == 0:
            raise ValueError('start 0')
        time.sleep(0.01)

    with pytest.raises(ValueError, match='start 0'):
        in_threads(fail, range(500), 1, False)
    assert len(called) < 500


def test_progress_is_on_standard_error(capsys):
    in_threads(lambda start: None, range(3), 1, True)
    out, err = capsys.readouterr()
    assert out == '' and 'Simulating' in err


def test_wrong_numbers_of_threads_are_refused():
    with pytest.raises(ValueError, match='num_threads is 0, expected at lea'):
        in_threads(print, range(1), 0, False)
    with pytest.raises(TypeError, match='num_threads is 1.5, expected an int'):
        in_threads(print, range(1), 1.5, False)
