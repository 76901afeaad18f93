import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pyg_fnri.simulation import Kuramoto

# Whole discoveries, if tiny ones.
pytestmark = pytest.mark.slow

TINY = ('--num-systems 16 --num-fitted 16 --num-checked 8 --max-steps 2 '
        '--hidden-channels 4 --batch-size 8').split()


@dataclass(frozen=True)
class Uncoupled(Kuramoto):
    """Oscillators alone: their features without anything to compile."""
    def simulate(self, edge_types, seed, num_threads=None, progress=False):
        rng = np.random.default_rng(seed)
        rate, phase = rng.random((2, len(edge_types), 5, 1))
        rate = (1 + 9 * rate) * np.ones(99)
        phase = 6 * phase + rate * np.arange(99) / 10
        x = np.stack([np.cos(phase), np.sin(phase), rate, rate], axis=-1)
        return x.astype(np.float32)


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/outside_assumptions')


@pytest.fixture(scope='module')
def places(tmp_path_factory):
    """Where things go, and the arguments that say so."""
    base = tmp_path_factory.mktemp('outside')
    return base, [
        '--root',
        str(base / 'data'), '--runs',
        str(base / 'runs'), '--out',
        str(base / 'out')
    ]


@pytest.fixture(scope='module')
def results(script, places):
    """Of two systems, after hardly any training."""
    base, arguments = places
    script.CASES['kuramoto'] = replace(script.CASES['kuramoto'],
                                       system=Uncoupled())
    # One after the other: the table is of all that is there.
    script.main(['kuramoto', *arguments, *TINY])
    script.main(['lawful', *arguments, *TINY])
    return base / 'out'


def test_results_of_each_system(results):
    result = json.loads((results / 'lawful.json').read_text())
    assert result['right'] is True and isinstance(result['holds'], bool)
    assert result['check']['num_systems'] == 8
    assert result['arguments']['max_steps'] == 2
    assert 0 <= result['refined_accuracy'] <= 1
    refused = json.loads((results / 'kuramoto.json').read_text())
    assert refused['holds'] is False and 'check' not in refused
    assert 'no positions and velocities' in refused['verdict']


def test_table_is_of_all_results(results):
    table = (results / 'table.md').read_text()
    assert '| kuramoto | no mechanics at all | refused | – |' in table
    assert '| lawful | nothing; no walls |' in table


def test_what_is_there_is_not_run_again(results, script, places, capsys):
    before = (results / 'kuramoto.json').stat().st_mtime_ns
    script.main(['kuramoto', *places[1], *TINY])
    assert (results / 'kuramoto.json').stat().st_mtime_ns == before
    assert 'kuramoto: breaks' not in capsys.readouterr().out


def test_rows_of_a_report(script):
    result = {
        'what': 'friction',
        'right': False,
        'holds': False,
        'verdict': 'Do not\n  trust.',
        'check': {
            'laws': [0.61, 0.02],
            'networks': [0.43, 0.01],
            'behind': [0.18, 0.01],
            'at_walls': None,
            'one_way': [4.0, 0.1],
            'findings': [{
                'name': 'velocity',
                'size': 0.123,
                'gain': [0.2, 0.01]
            }]
        },
        'encoder_accuracy': 0.8,
        'refined_accuracy': None,
        'minutes': 7.04,
    }
    text = script.report({'friction': result}).markdown()
    assert ('| friction | friction | no | 0.43 | 0.61 | -0.18 ± 0.01 | '
            'one way, velocity (12%) | 80.0 | – | 7.0 |') in text
    assert 'right for 1 of 1 systems' in text
    assert '**friction.** Do not trust.' in text


def test_a_system_that_is_unknown(script, capsys):
    with pytest.raises(SystemExit):
        script.main(['perpetuum'])
    assert "no system 'perpetuum'" in capsys.readouterr().err
