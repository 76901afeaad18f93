import pytest

from pyg_fnri.nn.latent.products import check_values, product_table


@pytest.mark.parametrize('values, table', [
    ([0, 1], [[0, 0], [0, 1]]),
    ([0, 1, -1], [[0, 0, 0], [0, 1, 2], [0, 2, 1]]),
    ([0, -1, 1], [[0, 0, 0], [0, 1, 2], [0, 2, 1]]),
    ([0, 1, 2], [[0, 0, 0], [0, 1, 2], [0, 2, 3]]),
    ([0, 2, -1], [[0, 0, 0], [0, 3, 2], [0, 2, 1]]),
])
def test_types_are_products_in_order_of_size(values, table):
    assert product_table(values).tolist() == table


@pytest.mark.parametrize('values', [
    [],
    [[]],
    [[0]],
    [[0, 1], [0]],
    [[1, 0]],
    [[1, -1]],
    [[0, 1, 1]],
])
def test_impossible_values(values):
    with pytest.raises(ValueError, match=r'0 first, such as \[\[0, 1\]\]'):
        check_values(values)


@pytest.mark.parametrize('values', [2, [0, 1], [[0, 0.5]], [['0', '1']]])
def test_values_that_are_none(values):
    with pytest.raises(TypeError, match=r'such as \[\[0, 1\]\], but got'):
        check_values(values)
