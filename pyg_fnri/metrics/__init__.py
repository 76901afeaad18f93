r"""Edge accuracy and rollout error, with the paper's definitions, and what
posteriors are worth beyond accuracy.

The states of metrics that add up over batches are plain sums, so results
weigh each edge and each predicted value equally, whatever the batch size and
the number of processes. Functions take all edges at once.
"""
from .agreement import Agreement, agreement
from .calibration import (
    Reliability,
    brier_score,
    expected_calibration_error,
    reliability,
)
from .consistency import Consistency, RelabellingConsistency
from .detection import auroc, average_precision
from .edge_accuracy import EdgeAccuracy, EdgeAccuracyResult, JointEdgeAccuracy
from .edge_posterior import EdgePosterior, join_posteriors, make_posterior
from .graph_report import GraphReport
from .joint_type import joint_type
from .law_error import relative_law_error
from .relabelling import Relabelling
from .rollout_mse import RolloutMSE
from .uncertainty import asymmetric_share, asymmetry, posterior_entropy

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
