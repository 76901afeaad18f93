"""The size of the house, beside its budget.

    python benchmarks/count.py

A check is every line that only leads to a `raise`: the statement, and
conditions and loops that hold nothing else.
"""
import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

#: Lines at the most, but for `files`.
LIMITS = {
    'pyg_fnri': 11_000,
    'files': 80,
    'checks': 800,
    'tests': 11_000,
    'scripts and benchmarks': 2_100,
    'README.md': 200
}


def is_check(node):
    """Whether a statement only leads to a `raise`."""
    body = [
        child for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.stmt) and not isinstance(child, ast.Expr)
    ]
    compound = (ast.If, ast.For, ast.With, ast.FunctionDef)
    return isinstance(node,
                      ast.Raise) or (isinstance(node, compound) and bool(body)
                                     and all(map(is_check, body)))


def count(path):
    """Lines of a file, and those of checks."""
    text = path.read_text()
    checks = set()
    for node in filter(is_check, ast.walk(ast.parse(text))):
        checks |= set(range(node.lineno, node.end_lineno + 1))
    return Counter(files=1, lines=len(text.splitlines()), checks=len(checks))


def main():
    files = subprocess.run(['git', 'ls-files', '*.py'], capture_output=True,
                           text=True, check=True).stdout.split()
    sizes: dict[str, Counter] = {}
    for path in filter(Path.exists, map(Path, files)):
        for part in {path.parts[0], '/'.join(path.parent.parts[:2])}:
            sizes[part] = sizes.get(part, Counter()) + count(path)
    print(f'{"":30} files  lines checks')
    for part, size in sorted(sizes.items()):
        print(f'{part:30} {size["files"]:5} {size["lines"]:6} '
              f'{size["checks"]:6}')
    package = sizes['pyg_fnri']
    readme = Path('README.md').read_text().splitlines()
    found = (package['lines'], package['files'], package['checks'],
             sizes['tests']['lines'],
             (sizes['scripts'] + sizes['benchmarks'])['lines'], len(readme))
    over = [
        f'over budget: {number} of {limit} {name}'
        for number, (name, limit) in zip(found, LIMITS.items())
        if number > limit
    ]
    sys.exit('\n'.join(over) if over else 0)


if __name__ == '__main__':
    main()
