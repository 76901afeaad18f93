"""The gallery: scripts that are pages.

    python docs/pages.py                      # run all pages, half an hour
    python docs/pages.py springs_charges      # run one

A page is a script in the percent format that editors and Jupytext show as a
notebook: `# %% [markdown]` begins prose in comments, `# %%` code. A line
`NAME = 500  # 20 in the tests` is a size; tests run pages at the small ones.
Running a page stores what each of its cells prints in `gallery/NAME.txt`, and
the pictures that it saves, with 8-bit colours, beside it. Building the site
runs nothing: it shows what is stored.
"""
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / 'docs' / 'gallery'
CELL = re.compile(r'^# %%( \[markdown\])?\n', re.MULTILINE)
PRINTED = re.compile(r'^# %% (\d+)\n', re.MULTILINE)
SMALL = re.compile(r'^(\w+ = ).*  # (.+) in the tests$', re.MULTILINE)
PICTURE = re.compile(r"savefig\('(\w+\.png)'\)(?:  # (.+))?$", re.MULTILINE)


class Cell(NamedTuple):
    is_prose: bool
    text: str


def read_cells(path: Path) -> list[Cell]:
    before, *parts = CELL.split(path.read_text())
    assert not before, f'{path} does not begin with a cell.'
    cells = []
    for kind, text in zip(parts[::2], parts[1::2]):
        if kind:
            text = re.sub(r'^# ?', '', text, flags=re.MULTILINE)
        cells.append(Cell(bool(kind), text.strip('\n')))
    return cells


def small(text: str) -> str:
    """A page's text with the sizes that tests take."""
    return SMALL.sub(r'\1\2', text)


def printed(path: Path) -> dict[int, str]:
    """What each cell printed when the page was last run."""
    stored = path.with_suffix('.txt')
    if not stored.exists():
        return {}
    _, *parts = PRINTED.split(stored.read_text())
    return {int(n): text.strip('\n') for n, text in zip(*2 * [iter(parts)])}


def to_markdown(path: Path) -> str:
    out, outputs = [], printed(path)
    for number, cell in enumerate(read_cells(path)):
        if cell.is_prose:
            out.append(cell.text)
            continue
        code = re.sub(r'  # .+ in the tests$', '', cell.text, flags=re.M)
        out.append(f'```python\n{PICTURE.sub(_without_caption, code)}\n```')
        if outputs.get(number):
            out.append(f'```{{code-block}} text\n:class: printed\n\n'
                       f'{outputs[number]}\n```')
        for name, caption in PICTURE.findall(cell.text):
            if (path.parent / name).exists():
                out.append(f'![{caption}]({name})')
    out.append(f'---\n{{download}}`The script of this page <{path.name}>`')
    return '\n\n'.join(out) + '\n'


def _without_caption(match: re.Match[str]) -> str:
    return f"savefig('{match[1]}')"


def card(name: str) -> str:
    """A page's title, its first picture and its first paragraph."""
    path = GALLERY / f'{name}.py'
    title, text, *_ = read_cells(path)[0].text.split('\n\n')
    pictures = [GALLERY / p for p, _ in PICTURE.findall(path.read_text())]
    image = next((f':img-top: {p.name}\n:img-alt:\n'
                  for p in pictures if p.exists()), '')
    return (f':::{{grid-item-card}} {title.lstrip("# ")}\n:link: {name}\n'
            f':link-type: doc\n{image}\n{text}\n:::\n')


#: Modules with a page of the reference, in which all their names are.
MODULES = [
    f'pyg_fnri.{path.stem}'
    for path in sorted((ROOT / 'docs' / 'reference').glob('*.md'))
    if f'REFERENCE pyg_fnri.{path.stem}\n' in path.read_text()
]
#: What a public constant is, in the comment before it.
ABOUT = r'^((?:#: .*\n)+){}\b'


def public_names(name: str) -> list[str]:
    """All that a module offers, of others too if it says so."""
    module = import_module(name)
    return getattr(module, '__all__', None) or [
        name for name, value in vars(module).items() if not name.startswith('_')
        and callable(value) and value.__module__ == module.__name__
    ]


def describe(module: str, name: str) -> str:
    """Sphinx's directive for a public name."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value):
        ours = any(b.__module__.startswith('pyg_') for b in value.__bases__)
        option = '   :show-inheritance:\n' * ours
        return f'.. autoclass:: {name}\n   :members:\n{option}'
    if inspect.isfunction(value):
        return f'.. autofunction:: {name}\n'
    home = Path(import_module(module).__file__).parent
    for source in [*home.glob('*.py'), *home.parent.rglob('*.py')]:
        about = re.search(ABOUT.format(name), source.read_text(), re.MULTILINE)
        if about:
            lines = about[1].replace('#: ', '   ')
            return f'.. py:data:: {name}\n\n{lines}'
    return f'.. py:data:: {name}\n\n   ``{value}``\n'


def reference(name: str) -> str:
    """What a module is for, its names with a line each, then in full. The
    package itself has in full what no other page has."""
    homes = dict.fromkeys(public_names(name), name)
    if name == 'pyg_fnri':
        for module in MODULES:
            homes |= dict.fromkeys({*homes} & {*public_names(module)}, module)
        homes.pop('__version__')
    shown = [n for n in homes if callable(getattr(import_module(name), n))]
    return '\n'.join([
        '```{eval-rst}', f'.. automodule:: {name}\n', '.. autosummary::',
        '   :nosignatures:\n',
        *(f'   ~{homes[n]}.{n}'.replace(f'{name}.', '', 1) for n in shown), '',
        *(describe(name, n) for n, home in homes.items() if home == name), '```'
    ])


def link(text: str) -> str:
    """Has public names in full, `pyg_fnri.nn.NRI`, lead to their place."""
    def lead(match: re.Match[str]) -> str:
        module, _, name = match[1].rpartition('.')
        known = module in MODULES and name.split('(')[0] in public_names(module)
        return f'{{py:obj}}`~{match[1]}`' if known else match[0]

    return re.sub(r'(?<!\})`(pyg_fnri\.[\w.]+)`', lead, text)


def show(app: Any, docname: str, source: list[str]) -> None:
    """Sphinx has read a source: pages become Markdown, `CARD page` and
    `REFERENCE module` on lines of their own what they stand for."""
    path = Path(app.env.doc2path(docname))
    text = to_markdown(path) if path.suffix == '.py' else source[0]
    for word, write in (('CARD', card), ('REFERENCE', reference)):
        text = re.sub(rf'^{word} ([\w.]+)$', lambda match: write(match[1]),
                      text, flags=re.MULTILINE)
    source[0] = link(text)


def signature(app: Any, what: str, name: str, value: Any, options: Any,
              arguments: str | None, returns: str | None) -> Any:
    """Defaults that are made anew each time are left out."""
    if arguments and '<factory>' in arguments:
        return arguments.replace('<factory>', '...'), returns
    return None


def skip(app: Any, what: str, name: str, value: Any, *args: Any) -> bool | None:
    """Fields of named tuples are in the docstrings of their classes."""
    return True if type(value).__name__ == '_tuplegetter' else None


def run(path: Path) -> None:
    from PIL import Image
    folder = ROOT / 'runs' / 'gallery'
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / 'datasets').exists():
        (folder / 'datasets').symlink_to(ROOT / 'datasets')
    # Lines keep their numbers: where a cell begins, its number is printed.
    numbers = iter(range(10**6))
    text = CELL.sub(
        lambda match: f'print("# %%", {next(numbers)}, flush=True)\n'
        if not match[1] else f'# prose {next(numbers)}\n', path.read_text())
    script = folder / path.name
    script.write_text(text)
    out = subprocess.run([sys.executable, script.name], cwd=folder, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    path.with_suffix('.txt').write_text(out)
    for name, _ in PICTURE.findall(text):
        with Image.open(folder / name) as image:
            # Without dithering, flat colours stay flat, and files small.
            image.convert('RGB').quantize(64, dither=Image.Dither.NONE).save(
                GALLERY / name, optimize=True)


if __name__ == '__main__':
    for page in sys.argv[1:] or sorted(p.stem for p in GALLERY.glob('*.py')):
        print(page, flush=True)
        run(GALLERY / f'{page}.py')
