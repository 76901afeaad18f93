"""What a run is: the settings that a checkpoint keeps beside its weights."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Optional

from pyg_fnri import nn
from pyg_fnri.training.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from pyg_fnri.datasets.spec import Systems

REGIMES = ('learned', 'supervised', 'true_graph')


@dataclass(frozen=True)
class Config:
    """All that a checkpoint needs besides its weights, in plain values.

    Args:
        in_channels: Number of features of a particle in a frame.
        num_observed: Number of frames that the encoder sees.
        num_edge_types: Types in each layer-graph, no interaction included.
        names: What each layer-graph stands for, where known.
        model: `nri`, `fnri` or `sfnri`.
        regime: `learned`, without labels; the encoder alone, `supervised`, or
            the decoder alone, `true_graph`, on true graphs.
        recipe: `quick`: minutes on two cores; `paper`: as published, 500
            epochs; `laws`: force laws and graphs fitted in turn.
        options: The fields of the recipe that differ from its defaults.
        unsplit: Reconstruct the frames that the encoder sees, as NRI did.
        seed: Seed of weights, shuffling and samples.
        data: What :func:`~pyg_fnri.datasets.spec.open_dataset` takes.
        laws: Of a :class:`~pyg_fnri.nn.ForceLawDecoder` as the decoder.
    """
    in_channels: int
    num_observed: int
    num_edge_types: Sequence[int]
    names: Sequence[str] = ()
    model: str = 'fnri'
    regime: str = 'learned'
    recipe: str = 'quick'
    options: dict[str, Any] = field(default_factory=dict)
    unsplit: bool = False
    seed: int = 0
    data: dict[str, Any] = field(default_factory=dict)
    laws: Optional[dict[str, Any]] = None

    def __post_init__(self) -> None:
        from pyg_fnri.datasets.stored import check_choice
        for of in fields(self):
            value = _plain(of.name, getattr(self, of.name))
            object.__setattr__(self, of.name, value)
        check_choice('model', self.model, list(nn.MODELS))
        check_choice('regime', self.regime, list(REGIMES))
        check_choice('recipe', self.recipe, list(RECIPES))
        known = [of.name for of in fields(RECIPES[self.recipe])]
        for option in self.options:
            check_choice(f'an option of the recipe {self.recipe}', option,
                         known)
        if (self.regime == 'supervised'
                and self.options.get('decoder') == 'equivariant'):
            raise ValueError("The regime supervised trains no messages, but an "
                             "equivariant decoder infers by them; leave out "
                             "decoder.")

    @classmethod
    def for_dataset(cls, dataset: Systems, num_observed: int,
                    num_edge_types: Optional[Sequence[int]] = None,
                    data: Optional[Mapping[str, Any]] = None,
                    **settings: Any) -> Config:
        """Of a training split; :obj:`num_edge_types` where no truth is. By the
        recipe `quick`, networks are of the kind that features are."""
        true = list(dataset.num_edge_types)
        asked = true if num_edge_types is None else list(num_edge_types)
        if not asked:
            raise ValueError("These data have no truth; say what to look for "
                             "by num_edge_types, such as 2 2.")
        if true and asked != true:
            raise ValueError(f'num_edge_types is {asked}, but the truth has '
                             f'{true}; leave one of them out.')
        from pyg_fnri.datasets.spec import frame_interval
        data = dict(data or {})
        interval = frame_interval(data, dataset)
        if 'files' in data:
            data['time_step'] = interval
        if settings.get('recipe', cls.recipe) == 'quick':
            options = settings.get('options', {})
            if 'encoder' not in options:
                options = {
                    'encoder': find_networks(dataset, interval)
                } | options
            settings['options'] = options
        return cls(dataset.num_node_features, num_observed, asked,
                   names=dataset.names, data=data, **settings)

    def build_recipe(self) -> Recipe:
        """The recipe, as it is for this model and regime."""
        recipe = RECIPES[self.recipe]
        defaults = recipe.defaults(nn.MODELS[self.model], self.regime)
        return recipe(**{**defaults, **self.options})

    def build_model(self) -> nn.RelationalAutoEncoder:
        """A new model with new weights, drawn from the seed."""
        import torch
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = self.build_recipe().build(nn.MODELS[self.model],
                                              self.in_channels,
                                              self.num_observed,
                                              self.num_edge_types)
            if self.laws is not None:
                settings = dict(self.laws)
                num_channels = model.latent.num_channels
                if settings.pop('order', 2) == 1:
                    layer = nn.rate_laws(num_channels, model.scaling,
                                         **settings)
                else:
                    law = nn.ForceLaw(num_channels,
                                      num_knots=settings.pop('num_knots', 26))
                    layer = nn.ForceLawDecoder(law, model.scaling, **settings)
                model.decoder = nn.RolloutDecoder(layer)
        return model


def find_networks(systems: Systems, interval: Optional[float]) -> str:
    """The kind of networks of the recipe `quick`, for features of frames so far
    apart: lines between particles need positions and velocities."""
    from pyg_fnri.inference import find_motions
    from pyg_fnri.loader import SystemLoader
    try:
        some = next(iter(SystemLoader(systems, 100)))
        motions = find_motions(some, interval or 1.0)
    except ValueError:  # Velocities are those of another interval.
        return 'equivariant'
    return 'equivariant' if {} in motions else 'mlp'


def _plain(name: str, value: Any) -> Any:
    """A value of the kinds that checkpoints are read with."""
    if hasattr(value, 'tolist'):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {_plain(name, k): _plain(name, v) for k, v in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_plain(name, v) for v in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is not None and type(value) not in (bool, int, float, str):
        raise TypeError(f"{name} holds {value!r}, which a checkpoint cannot; "
                        f"give it as numbers, texts and lists.")
    return value
