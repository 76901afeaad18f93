import pandas as pd
import pytest

PAIRS = [('a', 'b'), ('b', 'a'), ('a', 'c'), ('c', 'a'), ('b', 'c'), ('c', 'b')]
SPRINGS = {('a', 'b'), ('b', 'a')}
CHARGES = {('a', 'c'), ('c', 'a'), ('a', 'b'), ('b', 'a')}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/compare_graphs')


@pytest.fixture
def paths(tmp_path):
    """What was inferred about two systems, layer 0 being charges, and the
    truth, which is the same in both."""
    rows = [(system, *pair, layer, int(pair in found), 0.9) for system in (7, 8)
            for pair in PAIRS for layer, found in enumerate([CHARGES, SPRINGS])]
    columns = ['system', 'sender', 'receiver', 'layer', 'type', 'probability']
    inferred = pd.DataFrame(rows, columns=columns)
    true = inferred.query('type > 0').drop(columns='probability')
    true = true.replace({'layer': {0: 'charge', 1: 'a spring'}})
    out = str(tmp_path / 'edges.csv'), str(tmp_path / 'truth.csv')
    for table, path in zip((inferred, true), out):
        table.to_csv(path, index=False)
    return out


def change(path, change):
    change(pd.read_csv(path)).to_csv(path, index=False)


def test_layers_may_be_in_another_order(script, paths, capsys):
    script.main(list(paths))
    out = capsys.readouterr().out
    assert '2 systems, 12 edges' in out
    assert out.count('100.0%') == 3


def test_one_layer_needs_no_name(script, paths, capsys):
    change(paths[0], lambda table: table[table.layer == 1])
    change(paths[1],
           lambda table: table[table.layer == 'a spring'].drop(columns='layer'))
    script.main(list(paths))
    assert capsys.readouterr().out.count('100.0%') == 2


def test_wrong_edges_count_in_their_layer_and_in_all(script, paths, capsys):
    def set_wrong(table):
        # Springs of the first system, of which there are 2 in 6 edges.
        table.loc[(table.system == 7) & (table.layer == 1), 'type'] = 0
        return table

    change(paths[0], set_wrong)
    script.main(list(paths))
    first, spring, charge, _ = capsys.readouterr().out.splitlines()
    assert first.endswith(f'{10 / 12:.1%}')
    assert spring.split() == ['a', 'spring:', f'{10 / 12:.1%}']
    assert charge.split() == ['charge:', '100.0%']


def test_nothing_found_is_no_error(script, paths, capsys):
    change(paths[0], lambda table: table.assign(type=0))
    script.main(list(paths))
    # c and b alone do not interact, in both directions.
    assert capsys.readouterr().out.splitlines()[0].endswith(f'{2 / 6:.1%}')


def only_system(table):
    return table[table.system == 7].drop(columns='system')


def test_a_truth_without_systems_is_that_of_all(script, paths, capsys):
    change(paths[1], only_system)
    script.main(list(paths))
    out = capsys.readouterr().out
    assert '2 systems, 12 edges' in out
    assert out.count('100.0%') == 3


@pytest.mark.parametrize('of_truth', [only_system, lambda table: table])
def test_one_graph_is_compared_with_the_truth_of_all(script, paths, capsys,
                                                     of_truth):
    change(paths[0], only_system)
    change(paths[1], of_truth)
    script.main(list(paths))
    out = capsys.readouterr().out
    assert 'one graph, 6 edges' in out
    assert out.count('100.0%') == 3

    # A pair is wrong in one of its directions.
    change(
        paths[0],
        lambda table: table.assign(type=table.type.where(table.index != 0, 0)))
    script.main(list(paths))
    assert f'at once: {5 / 6:.1%}' in capsys.readouterr().out


@pytest.mark.parametrize('wrong', [
    lambda table: table[(table.system == 7) | (table.sender != 'a')],
    lambda table: table.assign(type=table.type + (table.system == 8)),
])
def test_one_graph_has_not_the_truth_of_systems_that_differ(
        script, paths, wrong):
    change(paths[0], only_system)
    change(paths[1], wrong)
    with pytest.raises(SystemExit,
                       match="'7' and '8' differ, .*'sender': 'a'.*--shared"):
        script.main(list(paths))


@pytest.mark.parametrize('which, wrong, message', [
    (1, lambda table: table.assign(system=table.system + 1),
     "no candidate edges .*'system': '9'"),
    (0, lambda table: pd.concat([table, table[:1]]), 'an edge twice'),
    (0, lambda table: table.drop(columns='layer'), 'an edge twice'),
    (1, lambda table: table.drop(columns='type'), "no column 'type'"),
    (0, lambda table: table.drop(columns='sender'), "no column 'sender'"),
])
def test_tables_that_do_not_fit_are_refused(script, paths, which, wrong,
                                            message):
    change(paths[which], wrong)
    with pytest.raises(SystemExit, match=message):
        script.main(list(paths))


def test_missing_file(script, paths):
    with pytest.raises(SystemExit, match='nowhere.csv'):
        script.main(['nowhere.csv', paths[1]])
