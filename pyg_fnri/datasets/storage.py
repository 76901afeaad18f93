"""Files that are written once, and are whole or not there."""
import os
import os.path as osp
import shutil
from collections.abc import Callable

from filelock import FileLock

from pyg_fnri.datasets.stored import written_whole


def save_once(
    path: str,
    save: Callable[[str], None],
    num_bytes: int = 0,
    overwrite: bool = False,
) -> None:
    """Has a file made, unless another process makes it or has made it.

    Two processes that ask at once wait for each other, and the second finds
    the file of the first. The file is written under another name and put in
    place when it is whole: whatever ends a process, no half of it stays under
    the name asked for, and the old file is there until the new one is.

    Args:
        path (str): The file. Missing folders are made.
        save (callable): Is given the name of the file to write.
        num_bytes (int): About how much room it takes, to find out that there
            is none before the work rather than after it. (default: 0)
        overwrite (bool): Whether to make it again if it is there already.
            (default: `False`)

    Raises:
        OSError: If the file cannot be written.
    """
    folder = osp.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        # The lock is let go of when its process ends, however it ends.
        with FileLock(osp.join(folder, '.lock')):
            if overwrite or not osp.exists(path):
                _check_room(folder, num_bytes)
                with written_whole(path) as part:
                    save(part)
    except OSError as error:
        raise OSError(f'Cannot write {path!r} ({error.strerror or error}); '
                      f'choose another place, or make room there.') from error


def _check_room(folder: str, num_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < num_bytes:
        raise OSError(f'it takes {num_bytes / 1e6:.0f} MB, and '
                      f'{free / 1e6:.0f} MB are free')
