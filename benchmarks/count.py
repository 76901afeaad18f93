"""The size of the house, and its budget.

    python benchmarks/count.py [FOLDER ...]

Code is every line that is neither blank, comment, docstring, import,
`__all__` nor part of a `raise`. A check is every line that only leads to a
`raise`: the statement, and conditions and loops that hold nothing else.
"""
import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

#: What `make count` holds the repository to.
LIMITS = {
    'pyg_fnri': 11_000,
    'pyg_fnri files': 80,
    'scripts + benchmarks': 2_100,
    'tests': 11_000,
    'README.md': 200,
    'checks': 800
}
MIN_CODE_SHARE = 0.5


def is_check(node):
    """Whether a statement only leads to a `raise`."""
    if isinstance(node, ast.Raise):
        return True
    body = [
        child for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.stmt) and not is_docstring(child)
    ]
    compound = (ast.If, ast.For, ast.With, ast.FunctionDef)
    return isinstance(node, compound) and bool(body) and all(map(
        is_check, body))


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_all(node):
    return isinstance(node, ast.Assign) and getattr(node.targets[0], 'id',
                                                    '') == '__all__'


def count(path):
    """The lines of a file: all, code and checks."""
    text = path.read_text()
    lines = text.splitlines()
    kind = {
        i + 1
        for i, line in enumerate(lines)
        if line.strip() and not line.strip().startswith('#')
    }
    checks = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        span = set(range(node.lineno, node.end_lineno + 1))
        if is_check(node):
            checks |= span & kind
        if (isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise))
                or is_docstring(node) or is_all(node)):
            kind -= span
    return Counter(lines=len(lines), code=len(kind), checks=len(checks),
                   files=1)


def python_files(folder):
    out = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard', folder],
        capture_output=True, text=True, check=True).stdout
    return [
        Path(p) for p in out.split() if p.endswith('.py') and Path(p).exists()
    ]


def total(folder):
    return sum(map(count, python_files(folder)), Counter())


def main():
    print(f'{"":30} files  lines   code checks')
    folders = sys.argv[1:] or [
        *sorted({str(p.parent)
                 for p in python_files('pyg_fnri')}), 'pyg_fnri', 'scripts',
        'benchmarks', 'tests'
    ]
    sizes = {folder: total(folder) for folder in folders}
    for folder, size in sizes.items():
        print(f'{folder:30} {size["files"]:5} {size["lines"]:6} '
              f'{size["code"] / max(size["lines"], 1):6.1%} {size["checks"]:6}')
    if sys.argv[1:]:
        return
    package = sizes['pyg_fnri']
    found = {name: size['lines'] for name, size in sizes.items()}
    found['pyg_fnri files'] = package['files']
    found['scripts + benchmarks'] = found['scripts'] + found['benchmarks']
    found['README.md'] = len(Path('README.md').read_text().splitlines())
    found['checks'] = package['checks']
    over = [
        f'{name}: {found[name]} of at most {limit}'
        for name, limit in LIMITS.items() if found[name] > limit
    ]
    if package['code'] < MIN_CODE_SHARE * package['lines']:
        over.append(f'less than {MIN_CODE_SHARE:.0%} of the package is code')
    sys.exit('\n'.join(['over budget:', *over]) if over else 0)


if __name__ == '__main__':
    main()
