"""From training to graphs on one table of systems of different sizes."""
import pandas as pd

SIZES = [3 + k % 10 for k in range(40)]  # 3 to 12.


def test_train_and_infer(load_script, write_table, tmp_path):
    data = write_table(tmp_path / 'mine.csv', SIZES)
    root = str(tmp_path / 'datasets')
    load_script('train').main([
        '--option', f'root={root}', '--data', data, '--num-edge-types', '2',
        '3', '--num-observed', '8', '--hidden-channels', '8', '--batch-size',
        '8', '--max-steps', '6', '--option', 'accelerator=cpu', '--out',
        str(tmp_path / 'run')
    ])
    load_script('infer').main([
        '--root', root, '--data', data, '--checkpoint',
        str(tmp_path / 'run' / 'best.ckpt'), '--out',
        str(tmp_path / 'graphs')
    ])
    table = pd.read_csv(tmp_path / 'graphs' / 'edges.csv')
    for number, size in enumerate(SIZES):
        rows = table[table.system == f's{number}']
        assert len(rows) == 2 * size * (size - 1)
        assert set(rows.sender) == {f'p{k}' for k in range(size)}
    assert set(table[table.layer == 0].type) <= {0, 1}
    assert set(table[table.layer == 1].type) <= {0, 1, 2}
    assert table.probability.between(1 / 3, 1).all()
