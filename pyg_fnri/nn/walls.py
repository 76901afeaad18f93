"""Reflecting walls, found in the trajectories themselves."""
import torch
from torch import Tensor

#: Fewer crossings than this could be chance, and decide nothing.
MIN_CROSSINGS = 10


class Walls(torch.nn.Module):
    r"""Folds states that have left a box back into it: at a wall :math:`b`,

    .. math::
        (x, v) \leftarrow (2b - x, -v),

    for each axis by itself. Where there is no wall, :math:`b` is infinite and
    states stay as they are; so they do before :meth:`fit`. Not in the paper.

    A velocity that turns round between two frames is a jump that networks
    learn last, though it is most of the squared error of a prediction.

    Args:
        num_features (int): Number of features of a particle: positions, then
            as many velocities. Other numbers of features have no walls.
    """
    lower: Tensor
    upper: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.num_axes = 0 if num_features % 2 else num_features // 2
        self.register_buffer('lower', torch.full((self.num_axes, ), -torch.inf))
        self.register_buffer('upper', torch.full((self.num_axes, ), torch.inf))
        self._found = False

    def forward(self, x: Tensor) -> Tensor:
        """The states :obj:`[..., num_features]`, inside the walls."""
        if not self._found:
            return x
        position, velocity = x.chunk(2, dim=-1)
        above, below = position > self.upper, position < self.lower
        wall = torch.where(above, self.upper, self.lower)
        outside = above | below
        # Chosen before it is folded: infinity minus a number is no gradient.
        folded = 2 * torch.where(outside, wall, 0.0) - position
        return torch.cat([
            torch.where(outside, folded, position),
            torch.where(outside, -velocity, velocity)
        ], dim=-1)

    @torch.no_grad()
    def fit(self, x: Tensor, free: Tensor, target: Tensor) -> 'Walls':
        """Takes the extremes of all positions for walls, each of them only if
        folding there predicts velocities better.

        Args:
            x: Trajectories, :obj:`[num_nodes, T, num_features]`, whose
                extremes are taken.
            free: States after a step in which nothing was in the way,
                :obj:`[num_states, num_features]`.
            target: What they have really become, of that shape.
        """
        self.lower.fill_(-torch.inf)
        self.upper.fill_(torch.inf)
        position = x[..., :self.num_axes]
        for axis in range(self.num_axes):
            place, speed = free[:, axis], free[:, self.num_axes + axis]
            true_speed = target[:, self.num_axes + axis]
            for wall, extreme, beyond in (
                (self.lower, position[..., axis].min(), torch.lt),
                (self.upper, position[..., axis].max(), torch.gt),
            ):
                out = beyond(place, extreme)
                if int(out.sum()) < MIN_CROSSINGS:
                    continue
                onwards = (true_speed - speed)[out].square().mean()
                back = (true_speed + speed)[out].square().mean()
                if bool(back < onwards / 2):
                    wall[axis] = extreme
        self._look()
        return self

    def _look(self) -> None:
        found = torch.cat([self.lower, self.upper]).isfinite().any()
        self._found = bool(found)

    def _load_from_state_dict(self, *args, **kwargs) -> None:  # type: ignore
        super()._load_from_state_dict(*args, **kwargs)
        self._look()

    def __repr__(self) -> str:
        return f'{self.__class__.__name__}({self.num_features})'
