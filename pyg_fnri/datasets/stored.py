"""Results go where they can be written, and are whole or not there."""
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def check_writable(directory: str) -> None:
    """Makes a directory if need be, and sure that files can be put there;
    before the work, not after it.

    Raises:
        OSError: If they cannot.
    """
    try:
        os.makedirs(directory, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise OSError(f"Cannot write to '{directory}' ({error.strerror}); name "
                      f"another directory with --out.") from error


@contextmanager
def written_whole(path: str) -> Iterator[str]:
    """Gives another name to write to, which becomes :obj:`path` in the end;
    if anything goes wrong, what stood there is left as it was."""
    part = f'{path}.part'
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
