"""Mini-batches of systems, cut out of a data set's tensors in one go."""
import copy
import copyreg
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Optional

import numpy as np
import torch
import torch.distributed
import torch.utils.data
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler
from torch_geometric.data import Batch, Data, Dataset, InMemoryDataset
from torch_geometric.loader.dataloader import Collater
from torch_geometric.transforms import Compose


class SystemLoader(DataLoader[Any]):
    """Yields the same batches as PyG's `DataLoader`, many times faster: it
    gathers all rows of a batch at once from an
    :class:`~torch_geometric.data.InMemoryDataset` (or `dataset[index]`).

    The data set's `transform` is applied to the whole batch if it declares
    `batchwise = True`: transforming a batch equals batching the transformed
    systems, and particles and edges stay where they are. Any other transform
    or kind of data set goes PyG's own way.

    Of several processes, each one has its share of every epoch, and none pads
    it: metrics count no system twice. Checkpoints of Lightning keep how far an
    epoch has come, so that training goes on with the next batch.

    Args:
        dataset: The systems, a data set or sequence.
        batch_size: The number of systems in a batch, of each process.
        shuffle: Whether to draw a new order in every epoch, from `generator`;
            with it, of the same seed, processes and checkpoints agree on one.
        **kwargs: Of :class:`torch.utils.data.DataLoader`, but `collate_fn`.
    """
    def __init__(self, dataset: Any, batch_size: Optional[int] = 1,
                 shuffle: Optional[bool] = None, **kwargs: Any) -> None:
        # Lightning rebuilds a loader from its attributes, set below.
        collate = kwargs.pop('collate_fn', None)
        if not isinstance(dataset, SystemBatches):
            if collate is not None:
                raise TypeError('SystemLoader takes no collate_fn; make it a '
                                'transform of the data set.')
            dataset = SystemBatches(dataset)
        if not any(map(kwargs.get, ('sampler', 'batch_sampler'))):
            generator = kwargs.get('generator')
            # Lightning shuffles by itself where processes share no order.
            if generator is not None or not shuffle:
                kwargs['sampler'] = _Shares(dataset, bool(shuffle), generator)
                shuffle = None
        self._skip = self._done = 0
        self._start: Optional[Tensor] = None
        super().__init__(dataset, batch_size, shuffle, collate_fn=_as_it_is,
                         **kwargs)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        skip, self._skip = self._skip, 0
        if self.generator is not None:
            self._start = self.generator.get_state()
        batches = enumerate(super().__iter__(), 1)
        for self._done, batch in islice(batches, skip, None):
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """How many batches are done, and where their order was drawn from."""
        if self._done < len(self):
            return {'done': self._done, 'generator': self._start}
        state = self.generator and self.generator.get_state()
        return {'done': 0, 'generator': state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._skip = state['done']
        if self.generator is not None and state['generator'] is not None:
            self.generator.set_state(state['generator'])


def processes() -> tuple[int, int]:
    """The rank of this process, and how many there are."""
    if not (torch.distributed.is_available()
            and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


class _Shares(DistributedSampler[Any]):
    """Deals one order out to all processes, however many there turn out to be;
    a shuffled one without the few systems that are one too many for some.
    Lightning puts no sampler of its own, which pads, in the place of such."""
    def __init__(self, dataset: Any, shuffle: bool,
                 generator: Optional[torch.Generator]) -> None:
        super().__init__(dataset, 1, 0, shuffle)
        self.order: Any = (RandomSampler(dataset, generator=generator)
                           if shuffle else SequentialSampler(dataset))

    def _own(self) -> slice:
        (rank, size), end = processes(), len(self.order)
        return slice(rank, end - end % size * self.shuffle, size)

    def __iter__(self) -> Iterator[int]:
        own = self._own()
        stop = None if own.step == 1 else own.stop
        return islice(iter(self.order), own.start, stop, own.step)

    def __len__(self) -> int:
        return len(range(len(self.order))[self._own()])


class SystemBatches(torch.utils.data.Dataset[Any]):
    """A data set that can be asked for a whole batch of systems at once."""
    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._collate = Collater(dataset)
        self._rows: Optional[np.ndarray] = None
        if not _is_gatherable(dataset):
            return
        # Where systems lie; along which dimension each tensor joins them, and
        # whether it numbers particles.
        self._rows = np.array(dataset.indices(), dtype=np.int64)
        first = dataset.get(0)
        self._layout: dict[str, tuple[int, bool]] = {
            key: (first.__cat_dim__(key, value), first.__inc__(key, value) != 0)
            for key, value in first.to_dict().items()
        }
        # Making a batch from scratch costs as much as filling it.
        self._empty = Batch(_base_cls=Data)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[idx]

    def __getitems__(self, idx: Sequence[int]) -> Any:
        transform = getattr(self.dataset, 'transform', None)
        if self._rows is None or not _is_batchwise(transform):
            return self._collate([self.dataset[i] for i in idx])
        batch = self._gather(self._rows[idx])
        if transform is not None:
            batch = transform(batch)
            # Lets `batch.to_data_list()` know of what it has added.
            for key in set(batch.keys()) - {*batch._slice_dict, 'batch', 'ptr'}:
                like = 'edge_index' if batch.is_edge_attr(key) else 'x'
                batch._slice_dict[key] = batch._slice_dict[like]
                batch._inc_dict[key] = torch.zeros_like(batch.ptr[:-1])
        return batch

    def _gather(self, rows: np.ndarray) -> Batch:
        """Does what `Batch.from_data_list` does, for the untransformed."""
        # By numpy: torch would wake its threads for each small step.
        data, starts = self.dataset._data, self.dataset.slices
        begin = starts['x'].numpy()
        ptr = _ends(begin[rows + 1] - begin[rows])
        batch = copy.copy(self._empty)
        slices, incs = {}, {}
        for key, (dim, numbers_particles) in self._layout.items():
            begin = starts[key].numpy()
            size = begin[rows + 1] - begin[rows]
            start = _ends(size)
            # Each system moves as one piece.
            shift = np.repeat(begin[rows] - start[:-1], size)
            value = data[key].numpy().take(np.arange(start[-1]) + shift, dim)
            inc = ptr[:-1] * numbers_particles
            if numbers_particles:
                value += np.repeat(inc, size)
            batch[key] = torch.from_numpy(value)
            slices[key] = torch.from_numpy(start)
            incs[key] = torch.from_numpy(inc)
        system = np.repeat(np.arange(rows.size), np.diff(ptr))
        batch.batch, batch.ptr = map(torch.from_numpy, (system, ptr))
        batch._num_graphs = rows.size
        batch._slice_dict, batch._inc_dict = slices, incs
        return batch


def _ends(size: np.ndarray) -> np.ndarray:
    """Where pieces end once they are joined, after a zero."""
    return np.concatenate([[0], size.cumsum()])


def _is_gatherable(dataset: Any) -> bool:
    """Whether gathering rows gives what PyG's way would."""
    cls = type(dataset)
    # A subclass may compute its systems as they are asked for.
    if (not isinstance(dataset, InMemoryDataset)
            or cls.get is not InMemoryDataset.get
            or cls.__getitem__ is not Dataset.__getitem__):
        return False
    data, slices = dataset._data, dataset.slices
    if type(data) is not Data or slices is None or 'x' not in slices:
        return False
    # PyG shifts `batch` vectors by their content.
    return all(
        _is_array(value) and 'batch' not in key and key != 'ptr'
        for key, value in data.to_dict().items())


def _is_array(value: Any) -> bool:
    """Whether this is a tensor that numpy can read where it lies."""
    try:
        return type(value) is Tensor and value.numpy().ndim > 0
    except (TypeError, RuntimeError):  # On a GPU, sparse, nested, bfloat16.
        return False


def _is_batchwise(transform: Any) -> bool:
    if isinstance(transform, Compose):
        return all(_is_batchwise(part) for part in transform.transforms)
    return transform is None or getattr(transform, 'batchwise', False) is True


def _as_it_is(batch: Any) -> Any:
    return batch


# PyTorch would send a tensor, which is gone once the process is that sends it.
def _reduce(generator: torch.Generator) -> tuple[Any, tuple[bytes]]:
    return _generator, (generator.get_state().numpy().tobytes(), )


def _generator(state: bytes) -> torch.Generator:
    out, known = torch.Generator(), torch.frombuffer(bytearray(state),
                                                     dtype=torch.uint8)
    # That of another kind of device says nothing to this one.
    return out.set_state(known) if len(known) == len(out.get_state()) else out


copyreg.pickle(torch.Generator, _reduce)
