"""The size of the house, beside its budget.

    python benchmarks/count.py

Code is every line that is neither blank, comment, docstring, import,
`__all__` nor part of a `raise`. A check is every line that only leads to a
`raise`: the statement, and conditions and loops that hold nothing else.
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
MIN_CODE_SHARE = 0.5


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_check(node):
    """Whether a statement only leads to a `raise`."""
    body = [
        child for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.stmt) and not is_docstring(child)
    ]
    compound = (ast.If, ast.For, ast.With, ast.FunctionDef)
    return isinstance(node,
                      ast.Raise) or (isinstance(node, compound) and bool(body)
                                     and all(map(is_check, body)))


def count(path):
    """Lines of a file: all, code and checks."""
    lines = path.read_text().splitlines()
    kept = {
        i
        for i, line in enumerate(lines, 1)
        if line.strip() and not line.strip().startswith('#')
    }
    code, checks = set(kept), set()
    for node in ast.walk(ast.parse('\n'.join(lines))):
        if isinstance(node, ast.stmt):
            span = set(range(node.lineno, node.end_lineno + 1))
            is_all = isinstance(node, ast.Assign) and getattr(
                node.targets[0], 'id', '') == '__all__'
            if is_check(node):
                checks |= span & kept
            if is_all or is_docstring(node) or isinstance(
                    node, (ast.Import, ast.ImportFrom, ast.Raise)):
                code -= span
    return Counter(files=1, lines=len(lines), code=len(code),
                   checks=len(checks))


def main():
    files = subprocess.run(['git', 'ls-files', '*.py'], capture_output=True,
                           text=True, check=True).stdout.split()
    sizes: dict[str, Counter] = {}
    for path in filter(Path.exists, map(Path, files)):
        parts = {path.parts[0], '/'.join(path.parent.parts[:2])}
        for part in parts:
            sizes[part] = sizes.get(part, Counter()) + count(path)
    print(f'{"":30} files  lines   code checks')
    for part, size in sorted(sizes.items()):
        print(f'{part:30} {size["files"]:5} {size["lines"]:6} '
              f'{size["code"] / size["lines"]:6.1%} {size["checks"]:6}')
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
    if package['code'] < MIN_CODE_SHARE * package['lines']:
        over.append(f'less than {MIN_CODE_SHARE:.0%} of the package is code')
    sys.exit('\n'.join(over) if over else 0)


if __name__ == '__main__':
    main()
