"""Scatter-sum aggregation."""
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.utils import scatter

try:
    import torch_scatter
except ImportError:  # The extra `[scatter]`; everything works without it.
    torch_scatter = None


class ScatterSum(Aggregation):
    r"""Sums messages to each receiver, :math:`\sum_{i \neq j}
    \mathbf{h}_{(i,j)}` (supplement, section 1); on GPUs by :mod:`torch_scatter`
    where installed."""
    def forward(self, x: Tensor, index: Optional[Tensor] = None,
                ptr: Optional[Tensor] = None, dim_size: Optional[int] = None,
                dim: int = -2) -> Tensor:
        if not x.is_cuda and index is not None and dim_size is not None:
            # Whole rows at once, also on the way back: twice as fast.
            size = list(x.size())
            size[dim] = dim_size
            return x.new_zeros(size).index_add_(dim, index, x)
        fast = (torch_scatter is not None and x.is_cuda
                and not torch.compiler.is_compiling())
        add = torch_scatter.scatter_sum if fast else scatter
        out: Tensor = add(x, index, dim, dim_size=dim_size)
        return out
