from pyg_fnri.application import draw_graphs, infer_each


def draw(module, dataset):
    first = infer_each(module, dataset).first
    return draw_graphs(module, first, dataset.system_names,
                       dataset.particle_names[0])


def test_graphs_and_what_follows_are_drawn(module, open_table):
    pictures = draw(module, open_table([3, 4]))
    assert list(pictures) == ['graph.png', 'heatmap.png', 'trajectories.png']
    titles = [axes.get_title() for axes in pictures['trajectories.png'].axes]
    assert titles[:2] == ['system s0', 'system s1']


def test_nothing_is_predicted_where_nothing_can_be(module, open_table):
    # No frames to compare with; diverging weights; no decoder that is trained.
    graphs = ['graph.png', 'heatmap.png']
    assert list(draw(module, open_table([3], num_steps=6))) == graphs
    dataset = open_table([3])
    assert len(draw(module, dataset)) == 3
    module.trained = ('encoder', )
    assert list(draw(module, dataset)) == graphs
    module.trained = ('encoder', 'decoder')
    for parameter in module.model.decoder.parameters():
        parameter.data.fill_(float('nan'))
    assert list(draw(module, dataset)) == graphs
