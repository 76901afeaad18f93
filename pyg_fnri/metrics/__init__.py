r"""Edge accuracy and rollout error, with the paper's definitions, and what
posteriors are worth beyond accuracy.

The states of metrics that add up over batches are plain sums, so results
weigh each edge and each predicted value equally, whatever the batch size and
the number of processes. Functions take all edges at once.
"""
from pyg_fnri.metrics.agreement import Agreement, agreement
from pyg_fnri.metrics.calibration import (
    Reliability,
    brier_score,
    expected_calibration_error,
    reliability,
)
from pyg_fnri.metrics.consistency import Consistency, RelabellingConsistency
from pyg_fnri.metrics.detection import auroc, average_precision
from pyg_fnri.metrics.edge_accuracy import (
    EdgeAccuracy,
    EdgeAccuracyResult,
    JointEdgeAccuracy,
)
from pyg_fnri.metrics.edge_posterior import (
    EdgePosterior,
    join_posteriors,
    make_posterior,
)
from pyg_fnri.metrics.graph_report import GraphReport
from pyg_fnri.metrics.joint_type import joint_type
from pyg_fnri.metrics.law_error import relative_law_error
from pyg_fnri.metrics.relabelling import Relabelling
from pyg_fnri.metrics.rollout_mse import RolloutMSE
from pyg_fnri.metrics.uncertainty import (
    asymmetric_share,
    asymmetry,
    posterior_entropy,
)

__all__ = [
    'Agreement',
    'Consistency',
    'EdgeAccuracy',
    'EdgeAccuracyResult',
    'EdgePosterior',
    'GraphReport',
    'JointEdgeAccuracy',
    'RelabellingConsistency',
    'Relabelling',
    'Reliability',
    'RolloutMSE',
    'agreement',
    'asymmetric_share',
    'asymmetry',
    'auroc',
    'average_precision',
    'brier_score',
    'expected_calibration_error',
    'join_posteriors',
    'joint_type',
    'make_posterior',
    'posterior_entropy',
    'relative_law_error',
    'reliability',
]
