"""What a result says: in ten lines, and as one HTML page."""
import base64
import io
import platform
from collections.abc import Mapping
from html import escape
from typing import Any, Optional

import torch
import torch_geometric
from matplotlib.figure import Figure

from pyg_fnri import __version__
from pyg_fnri.nn import ForceLawDecoder

#: Rows of the table of edges that a page shows.
NUM_ROWS = 20
STYLE = '''
body { font: 16px/1.5 system-ui, sans-serif; color: #333; margin: 2em auto;
       max-width: 60em; padding: 0 1em; }
h1, h2 { line-height: 1.2; font-weight: 600; }
h2 { margin-top: 2em; border-bottom: 1px solid #ddd; }
img { max-width: 100%; height: auto; }
pre { white-space: pre-wrap; background: #f6f6f6; padding: 1em; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
td, th { padding: .2em .8em; text-align: right; border: 0;
         border-bottom: 1px solid #eee; }
.holds { border-left: 6px solid #2a9d5c; padding-left: 1em; }
.fails { border-left: 6px solid #c8452e; padding-left: 1em; }
'''
#: What pictures show, in the order of the page.
CAPTIONS = {
    'graph': 'The graph of the first system. Doubtful edges are pale.',
    'heatmap': 'How probable interactions of the first system are.',
    'changes': 'How probable interactions are in each window, of the pairs '
               'that change most.',
    'laws': 'Laws of the distance, with intervals of 90 %.',
    'trajectories': 'Predictions of frames that nothing was fitted to, from '
                    'one state on, over the true ones.'
}  # yapf: disable


def make_page(result: Any, pictures: Optional[Mapping[str,
                                                      Figure]] = None) -> str:
    """The whole page on a :class:`~pyg_fnri.GraphEstimator`, as HTML."""
    pictures = result.pictures() if pictures is None else pictures
    source = escape(str(result.about.get('source', 'trajectories')))
    shown = {
        name: _picture(pictures[name], text)
        for name, text in CAPTIONS.items() if name in pictures
    }
    check = result.check
    verdict = '<p>The laws were not checked, or there are none.</p>'
    if check is not None:
        kind = 'holds' if check.holds else 'fails'
        verdict = f'<div class="{kind}"><pre>{escape(str(check))}</pre></div>'
    table, number = result.graph, len(result.graph)
    laws = result.laws
    parts = [
        ('Summary', f'<pre>{escape(str(result))}</pre>'),
        ('Can it be believed?', verdict),
        ('Graph', shown.pop('graph', '') + shown.pop('heatmap', '') +
         shown.pop('changes', '') + _table(table) +
         f'<p>{min(NUM_ROWS, number)} of {number:,} rows.</p>'),
        ('Laws', shown.pop('laws', '') +
         ('<p>Networks have no laws.</p>' if laws is None else
          f'<pre>{escape(str(laws))}</pre>')),
        ('Prediction', ''.join(shown.values()) or
         '<p>Nothing was held out to be predicted.</p>'),
        ('Settings', f'<pre>{escape(_settings(result))}</pre>')
    ]  # yapf: disable
    body = ''.join(f'<h2>{title}</h2>{text}' for title, text in parts)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width">'
            f'<title>Interaction graph of {source}</title>'
            f'<style>{STYLE}</style></head><body>'
            f'<h1>Interaction graph of {source}</h1>{body}</body></html>\n')


def describe(result: Any) -> list[str]:
    """Ten lines or so on what was found, and whether to believe it."""
    about, config = result.about, result.module.config
    out = [f"interaction graph of {about.get('source', 'no data yet')}"]
    if result.data:
        sizes = {of.num_nodes for of in result.data}
        number = ' to '.join(map(str, sorted({min(sizes), max(sizes)})))
        step = config.data.get('time_step')
        out.append(f"{len(result.data)} system{'s'[:len(result.data) > 1]} of "
                   f"{number} particles, {result.data[0].x.size(1)} frames"
                   f"{f' {step:g} apart' if step else ''}")
    layer: Any = result.module.model.decoder.layer
    kind = 'networks'
    if isinstance(layer, ForceLawDecoder):
        kind = f"laws of {('first', 'second')[layer.order - 1]} order"
    out.append(f'found: {kind}, {len(config.num_edge_types)} '
               f"layer{'s'[:len(config.num_edge_types) > 1]} of "
               f"{', '.join(map(str, config.num_edge_types))} types")
    if result.data:
        for number, rows in result.graph.groupby('layer'):
            share = (rows['type'] > 0).mean()
            out.append(f'  layer {number}: {share:.1%} of {len(rows):,} '
                       f'candidate edges interact, mean probability '
                       f"{rows['probability'].mean():.3f}")
    if (laws := result.laws) is not None:
        out += [f'  {name}: {text}' for name, text in laws.words.items()]
    if 'score' in about:
        out.append(f"predicted: {about['score']:.2%} of what changes in "
                   f"{about['horizon']} steps (R², median of held-out "
                   f"systems)")
    if result.check is not None:
        out += str(result.check).splitlines()[:-1]
    if kind == 'networks' and result.check is not None:
        out.append('Networks took the place of laws, as they predict '
                   'held-out frames better; what they call an interaction '
                   'may be none.')
    return out + [f'warning: {text}' for text in about.get('warnings', [])]


def make_summary(result: Any) -> str:
    """A few lines and the graph of the first system, for notebooks."""
    text = f'<pre>{escape(repr(result))}</pre>'
    if getattr(result, 'data', None) and result.data[0].num_edges:
        text += _picture(result.plot('graph'), CAPTIONS['graph'])
    return text


def _picture(figure: Figure, text: str) -> str:
    file = io.BytesIO()
    figure.savefig(file, format='png', dpi=110)
    code = base64.b64encode(file.getvalue()).decode()
    return (f'<figure><img alt="{escape(text)}" '
            f'src="data:image/png;base64,{code}">'
            f'<figcaption>{escape(text)}</figcaption></figure>')


def _table(table: Any) -> str:
    html = table.head(NUM_ROWS).to_html(index=False, border=0,
                                        float_format='{:.4g}'.format)
    return f'<div class="table">{html}</div>'


def _settings(result: Any) -> str:
    versions = {
        'pyg_fnri': __version__,
        'torch': torch.__version__,
        'torch_geometric': torch_geometric.__version__,
        'Python': platform.python_version()
    }
    shown: dict[str, Any] = {**result.get_params(), **result.about, **versions}
    for name in ('warnings', 'held_out'):
        shown.pop(name, None)
    return '\n'.join(f'{name}: {value}' for name, value in shown.items())
