"""Work in threads, with a progress bar."""

from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Optional

from numba import config
from rich.console import Console
from rich.progress import track

from pyg_fnri.simulation.checks import integer


def in_threads(function: Callable[[int], None], starts: range,
               num_threads: Optional[int], progress: bool) -> None:
    """Calls a function for each start.

    In threads of Python, as compiled code releases the interpreter's lock:
    unlike numba's own, they may run beside each other and after a fork.

    Args:
        function (callable): Called with each of ``starts``.
        starts (range): Where each piece of the work starts.
        num_threads (int, optional): Number of threads. If absent, as many as
            numba's ``NUMBA_NUM_THREADS``, by default all processors.
        progress (bool): Whether to show a progress bar on standard error.

    Raises:
        TypeError: If the number of threads is no integer.
        ValueError: If it is not at least one.
    """
    if num_threads is None:
        num_threads = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    num_threads = integer('num_threads', num_threads, 1)
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            calls = [pool.submit(function, start) for start in starts]
            for call in track(calls, 'Simulating', disable=not progress,
                              console=Console(stderr=True)):
                call.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
