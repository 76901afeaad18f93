"""A report on the terminal."""
from collections.abc import Mapping
from typing import Any, Optional

from rich.console import Console

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.spec import Systems
from pyg_fnri.evaluation.tables import (
    accuracy_table,
    beyond_table,
    error_table,
)
from pyg_fnri.training import RelationalInference

#: Ways to infer graphs that may have a report within the report.
BETTER = ('refined', 'sampled')


def print_report(module: RelationalInference, dataset: Systems,
                 report: Mapping[str, Any], batch_size: int) -> None:
    """Prints the paper's tables 1 and 2, our rows last, and what comes on
    top; no accuracies where the truth is not known.

    Args:
        module: What has been measured.
        dataset: On which systems.
        report: What :func:`~pyg_fnri.evaluation.evaluate` says of them, with
            that of better graphs as :obj:`refined` and :obj:`sampled`, and
            :obj:`law_error` by the names of the laws, where there are some.
        batch_size: Systems in a batch.
    """
    config = module.config
    console = Console()
    where = f"{dataset.name}, {report['num_systems']} systems"
    # A user's file may be called as one of the paper's systems.
    name = dataset.name if isinstance(dataset, ParticleSystems) else ''
    row = f"{config.model} ({config.regime.replace('_', ' ')})"
    ours = {f'{row}, ours': report}
    for way in BETTER:
        if way in report:
            ours[f'{row}, ours, {way}'] = report[way]
    if 'edge_accuracy' in report:
        console.print(
            accuracy_table(f'Edge accuracy (%), {where}', ours,
                           layer_names(module), config.model, name))
    if 'rollout_mse' in report:
        console.print(
            error_table(
                f'Rollout mean squared error (1e-5, min-max units), {where}',
                ours, config.model, name))
    if 'entropy' in report:
        for title, figures in ours.items():
            console.print(
                beyond_table(f'Beyond accuracy, {title}, {where}', figures,
                             layer_names(module, figures)))
    lines = []
    if 'relabelling' in report:
        for title, figures in ours.items():
            agreement = figures['relabelling_consistency']
            lines.append(f"{title}: relabelling found: "
                         f"{figures['relabelling']}; {agreement['share']:.1%} "
                         f"of {agreement['num_batches']} batches of "
                         f"{batch_size} systems agree")
    if 'law_error' in report:
        errors = ', '.join(f'{name} {error:.1%}'
                           for name, error in report['law_error'].items())
        lines.append(f'Relative error of the force laws: {errors}')
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def best_figures(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the best way to infer graphs."""
    for way in reversed(BETTER):
        if way in report:
            return report[way]
    return report


def layer_names(module: RelationalInference,
                figures: Optional[Mapping[str, Any]] = None) -> list[str]:
    """Names of the true layer-graphs, or of those predicted where figures
    are without truth."""
    if figures is None or 'relabelling' in figures:
        num_layers = len(module.config.num_edge_types)
        return [module.layer_name(layer) for layer in range(num_layers)]
    num_layers = module.model.latent.num_layers
    return [f'predicted layer {layer}' for layer in range(num_layers)]
