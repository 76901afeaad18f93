"""What a run is: the settings that a checkpoint keeps beside its weights."""
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from pyg_fnri.nn import (
    ForceLaw,
    ForceLawDecoder,
    RelationalAutoEncoder,
    ResidualForceLaws,
    RolloutDecoder,
)
from pyg_fnri.nn.models import MODELS
from pyg_fnri.recipes import PaperRecipe, QuickRecipe, Recipe
from pyg_fnri.training.em_recipe import EMRecipe

#: The recipes and regimes that a command line can name, besides MODELS.
RECIPES: dict[str, type[Recipe]] = {
    'quick': QuickRecipe,
    'paper': PaperRecipe,
    'em': EMRecipe,
}
REGIMES = ('learned', 'supervised', 'true_graph')


@dataclass(frozen=True)
class Config:
    """All that a checkpoint needs, besides its weights, to be used again.

    Args:
        in_channels: Number of features of a particle in a frame.
        num_observed: Number of frames that the encoder sees.
        num_edge_types: Number of types of each layer-graph, null included.
        names: What each layer-graph stands for, where known.
        model: A key of :obj:`MODELS`.
        regime: One of :obj:`REGIMES`: what is trained on what.
        recipe: A key of :obj:`RECIPES`.
        options: The fields of the recipe that differ from its defaults for
            this model and regime.
        unsplit: Whether the decoder has to reconstruct the frames that the
            encoder sees, rather than those that follow them.
        seed: Seed of weights, shuffling and samples.
        data: Where the training data came from, so that
            :func:`~pyg_fnri.datasets.spec.open_dataset` can open them again.
        laws: Arguments of :class:`~pyg_fnri.nn.ForceLawDecoder` where force
            laws have taken the place of the recipe's decoder, None where not.
        residual: Size of the hidden layers of the network that corrects these
            laws, None where there is none.

    Raises:
        ValueError: On an unknown model, regime, recipe or option, or a
            residual of no laws.
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
    residual: Optional[int] = None

    def __post_init__(self) -> None:
        _check_name('model', self.model, MODELS)
        _check_name('regime', self.regime, REGIMES)
        _check_name('recipe', self.recipe, RECIPES)
        known = RECIPES[self.recipe].__dataclass_fields__
        for option in self.options:
            _check_name(f"option of the recipe '{self.recipe}'", option, known)
        if self.residual is not None and self.laws is None:
            raise ValueError(f"A residual network (of size {self.residual}) "
                             f"corrects force laws, but there are none: laws "
                             f"is None.")

    def build_recipe(self) -> Recipe:
        """The recipe, as it is for this model and regime."""
        recipe = RECIPES[self.recipe]
        defaults = recipe.defaults(MODELS[self.model], self.regime)
        return recipe(**{**defaults, **self.options})

    def build_model(self) -> RelationalAutoEncoder:
        """A new model with new weights, drawn from the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = self.build_recipe().build(MODELS[self.model],
                                              self.in_channels,
                                              self.num_observed,
                                              self.num_edge_types)
            if self.laws is not None:
                model.decoder = RolloutDecoder(self._build_laws(model))
            if self.residual is not None:  # Which alone is to be trained.
                model.encoder.requires_grad_(False)
                model.decoder.layer.law.requires_grad_(False)
        return model

    def _build_laws(self, model: RelationalAutoEncoder) -> ForceLawDecoder:
        law, laws = ForceLaw(model.latent.num_channels), self.laws or {}
        if self.residual is None:
            return ForceLawDecoder(law, model.scaling, **laws)
        return ResidualForceLaws(law, model.scaling, self.residual, **laws)


def _check_name(kind: str, name: str, known: Any) -> None:
    if name not in known:
        raise ValueError(f"Unknown {kind} {name!r}; expected one of "
                         f"{', '.join(map(repr, known))}.")
