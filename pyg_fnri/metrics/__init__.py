"""Edge accuracy and rollout error as the paper defines them, and what
posteriors are worth; each edge and each predicted value weighs the same."""
from typing import TYPE_CHECKING

from pyg_fnri import lazily

if TYPE_CHECKING:
    from pyg_fnri.metrics.edge_accuracy import (Agreement, EdgeAccuracy,
                                                EdgeAccuracyResult,
                                                JointEdgeAccuracy, agreement,
                                                relabelling_consistency)
    from pyg_fnri.metrics.errors import (RolloutMSE, guessing_accuracy,
                                         linear_rollout, relative_law_error,
                                         static_rollout)
    from pyg_fnri.metrics.posterior import (EdgePosterior, Reliability,
                                            asymmetric_share, asymmetry,
                                            brier_score, detection,
                                            expected_calibration_error,
                                            graph_report, posterior_entropy,
                                            reliability, type_confidence)
    from pyg_fnri.metrics.relabelling import Relabelling, assign, joint_type
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    'Agreement', 'EdgeAccuracy', 'EdgeAccuracyResult', 'EdgePosterior',
    'JointEdgeAccuracy', 'Relabelling', 'Reliability', 'RolloutMSE',
    'agreement', 'assign', 'asymmetric_share', 'asymmetry', 'brier_score',
    'detection', 'expected_calibration_error', 'graph_report',
    'guessing_accuracy', 'joint_type', 'linear_rollout', 'posterior_entropy',
    'relabelling_consistency', 'relative_law_error', 'reliability',
    'static_rollout', 'type_confidence'
]
