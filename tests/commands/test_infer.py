import networkx as nx
import pandas as pd
import pytest

RESULTS = {
    'edges.csv', 'graphs.graphml', 'graph.png', 'heatmap.png', 'model.ckpt',
    'report.html', 'summary.txt', 'systems.pt', 'trajectories.png'
}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('infer')


@pytest.fixture
def arguments(own_run, tmp_path):
    return [
        '--checkpoint',
        str(own_run / 'best.ckpt'), '--out',
        str(tmp_path / 'graphs')
    ]


def read(folder):
    """All files of results, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_graphs_of_systems_of_other_sizes(script, arguments, write_table,
                                          tmp_path, capsys):
    # Training has seen 3 to 5 particles.
    data = write_table(tmp_path / 'new.csv', [2, 7], num_steps=12)
    script.main([*arguments, '--data', data])
    out = tmp_path / 'graphs'
    assert set(read(out)) == RESULTS
    text = capsys.readouterr().out
    assert '2 systems of 2 to 7 particles' in text and 'report.html' in text
    table = pd.read_csv(out / 'edges.csv')
    assert len(table) == 2 * (2 * 1 + 7 * 6)
    graph = nx.read_graphml(out / 'graphs.graphml')
    assert graph.number_of_nodes() == 9
    # Both directions of a pair are one edge.
    assert 2 * graph.number_of_edges() == (table.type > 0).sum()


def test_results_are_replaced_on_demand_only(script, arguments, write_table,
                                             tmp_path):
    long = write_table(tmp_path / 'long.csv', [3])
    script.main([*arguments, '--data', long])
    before = read(tmp_path / 'graphs')
    with pytest.raises(SystemExit, match='model.ckpt'):
        script.main([*arguments, long, '--stay', '0.9'])
    assert read(tmp_path / 'graphs') == before
    short = write_table(tmp_path / 'short.csv', [2])
    script.main([*arguments, short, '--overwrite'])
    assert read(tmp_path / 'graphs')['edges.csv'] != before['edges.csv']


@pytest.mark.parametrize('words, said', [(['--stay', '1'], 'between 0 and 1'),
                                         (['--method', 'laws'], '--method is')])
def test_what_would_be_in_vain_is_told_at_once(script, arguments, write_table,
                                               tmp_path, capsys, words, said):
    data = write_table(tmp_path / 'new.csv', [3])
    with pytest.raises(SystemExit, match='2'):
        script.main([*arguments, data, *words])
    assert said in capsys.readouterr().err
    assert not (tmp_path / 'graphs').exists()


def test_systems_of_the_same_particles_share_a_graph(script, arguments,
                                                     write_table, tmp_path,
                                                     capsys):
    data = write_table(tmp_path / 'new.csv', [4] * 6)
    script.main([*arguments, '--data', data, '--shared', '--window', '10'])
    text = capsys.readouterr().out
    assert '1 system of 4 particles' in text and 'not independent' in text
    assert set(read(tmp_path / 'graphs')) == RESULTS
    with pytest.raises(SystemExit) as stop:
        script.main(arguments)
    assert stop.value.code == 2 and 'FILE' in capsys.readouterr().err
