"""What recipes make: learning rates, and models of two layers of two types."""
import torch

from pyg_fnri.nn import FNRI


def rates(recipe, num_steps):
    """The learning rate of each step, or epoch, of the recipe's schedule."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=recipe.learning_rate)
    scheduler = recipe.schedule(optimizer)['scheduler']
    out = []
    for _ in range(num_steps):
        out.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        scheduler.step()
    return out


def build(recipe, batch, model=FNRI):
    """A model with fitted units."""
    out = recipe.build(model, batch.x.size(-1), batch.x.size(1), [2, 2])
    recipe.fit_units(out, torch.cat([batch.x, batch.y], dim=1))
    return out.eval()


def graph(model, batch):
    types = torch.randint(2, (batch.num_edges, 2))
    return model.latent.encode_types(types)
