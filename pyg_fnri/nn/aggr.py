"""Scatter-sum aggregation, by the fastest path that applies."""
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.utils import scatter

try:
    import torch_scatter
except ImportError:  # The extra `[scatter]`; everything works without it.
    torch_scatter = None

PATHS = ('auto', 'segment', 'index_add', 'scatter', 'torch_scatter')


class ScatterSum(Aggregation):
    r"""Sums the messages to each receiver,
    :math:`\sum_{i \neq j} \mathbf{h}_{(i,j)}` (:math:`e \rightarrow v` in
    section 1 of the paper's supplement).

    All paths give the same sum, up to rounding, at very different speeds:

    * :obj:`'segment'`: a plain sum over contiguous segments of equal length.
      Applies where receivers are sorted and have equally many senders, as in
      batches of fully connected systems of one size.
    * :obj:`'index_add'`: :meth:`torch.Tensor.index_add`.
    * :obj:`'scatter'`: :func:`torch_geometric.utils.scatter`.
    * :obj:`'torch_scatter'`: :func:`torch_scatter.scatter_sum`, where that
      package is installed.
    * :obj:`'auto'`: on CPUs the segments where they apply, otherwise
      :obj:`'index_add'` where gradients are needed and :obj:`'scatter'` where
      not; on GPUs, where looking at the indices would stall the device,
      :obj:`'torch_scatter'` where installed, otherwise :obj:`'scatter'`.

    Args:
        path (str, optional): One of the above. (default: :obj:`'auto'`)

    Raises:
        ValueError: On an unknown path, or on :obj:`'segment'` where receivers
            are not sorted into segments of equal length.
        ImportError: On :obj:`'torch_scatter'` where that is not installed.
    """
    def __init__(self, path: str = 'auto') -> None:
        super().__init__()
        if path not in PATHS:
            raise ValueError(f"Unknown path {path!r} of ScatterSum; expected "
                             f"one of {', '.join(map(repr, PATHS))}.")
        if path == 'torch_scatter' and torch_scatter is None:
            raise ImportError("The path 'torch_scatter' needs the package "
                              "torch-scatter; install it as the README says, "
                              "or leave the path at 'auto'.")
        self.path = path

    def forward(
        self,
        x: Tensor,
        index: Optional[Tensor] = None,
        ptr: Optional[Tensor] = None,
        dim_size: Optional[int] = None,
        dim: int = -2,
    ) -> Tensor:
        """Sums the slices of :obj:`x` along :obj:`dim` by receiver.

        Args:
            x: Messages, :obj:`[..., num_edges, ...]` with edges at :obj:`dim`.
            index: Receiver of each message, :obj:`[num_edges]`.
            ptr: Not used; part of the interface of aggregations.
            dim_size: Number of receivers; by default as many as the highest
                index asks for.
            dim: Dimension of the edges.

        Returns:
            Sums, :obj:`[..., dim_size, ...]`; zero for a receiver without
            messages.
        """
        if index is None:
            raise ValueError("ScatterSum needs the receiver of each message "
                             "in `index`, but got None.")
        if dim_size is None:
            dim_size = int(index.max()) + 1 if index.numel() else 0
        path = self.path
        if path == 'auto':
            path = self._fastest(x, index, dim_size)
        elif path == 'segment' and not _is_segmented(index, dim_size):
            raise ValueError(
                "The path 'segment' needs receivers that are sorted and have "
                "equally many senders; sort the edges by receiver or leave "
                "the path at 'auto'.")

        dim = dim + x.dim() if dim < 0 else dim
        if path == 'segment':
            length = index.numel() // dim_size
            return x.unflatten(dim, (dim_size, length)).sum(dim + 1)
        if path == 'index_add':
            size = x.size()[:dim] + (dim_size, ) + x.size()[dim + 1:]
            return x.new_zeros(size).index_add(dim, index, x)
        if path == 'torch_scatter':
            return torch_scatter.scatter_sum(x, index, dim, dim_size=dim_size)
        return scatter(x, index, dim, dim_size, reduce='sum')

    @staticmethod
    def _fastest(x: Tensor, index: Tensor, dim_size: int) -> str:
        if torch.compiler.is_compiling():
            return 'index_add'  # No look at the data: keeps one whole graph.
        if x.is_cuda:
            return 'scatter' if torch_scatter is None else 'torch_scatter'
        if _is_segmented(index, dim_size):
            return 'segment'
        return 'index_add' if x.requires_grad else 'scatter'

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(path={self.path!r})"


def _is_segmented(index: Tensor, dim_size: int) -> bool:
    if dim_size == 0 or index.numel() % dim_size != 0:
        return False
    segments = index.view(dim_size, -1)
    receiver = torch.arange(dim_size, device=index.device)
    return torch.equal(segments, receiver.unsqueeze(-1).expand_as(segments))
