import pandas as pd
import pytest
import torch


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('select_layers')


def test_own_data(script, own_root, own_table, tmp_path, capsys):
    truth = pd.DataFrame([('s0', 'p0', 'p1', 1), ('s0', 'p1', 'p0', 1)],
                         columns=['system', 'sender', 'receiver', 'type'])
    truth.to_csv(tmp_path / 'truth.csv', index=False)
    out = tmp_path / 'layers'
    script.main([
        '--data', own_table, '--recipe', 'quick', '--candidates', '2,2', '2',
        '--seeds', '0', '--num-observed', '8', '--hidden-channels', '8',
        '--batch-size', '8', '--max-steps', '3', '--out',
        str(out), '--interactions',
        str(tmp_path / 'truth.csv'), '--option', f'root={own_root}', '--option',
        'accelerator=cpu'
    ])
    assert {path.name
            for path in out.iterdir()
            } == {'2-seed-0', '2-2-seed-0', 'selection.csv', 'selection.png'}
    table = pd.read_csv(out / 'selection.csv', dtype={'candidate': str})
    assert table['edge_accuracy'].notna().tolist() == [True, False]
    chosen = table[table['recommended']]['candidate'].item()
    printed = capsys.readouterr().out
    assert f"--num-edge-types {chosen.replace(',', ' ')}" in printed
    assert 'Warning: With one seed' in printed
    # Models know nothing of the truth.
    config = torch.load(out / '2-2-seed-0' / 'best.ckpt',
                        weights_only=True)['config']
    assert 'interactions' not in config['data']['files']
