r"""Edge accuracy and rollout error, with the paper's definitions.

Every state is a plain sum, so results weigh each edge and each predicted
value equally, whatever the batch size and the number of processes.
"""
from .edge_accuracy import EdgeAccuracy, EdgeAccuracyResult, JointEdgeAccuracy
from .law_error import relative_law_error
from .relabelling import Relabelling
from .rollout_mse import RolloutMSE

__all__ = [
    'EdgeAccuracy',
    'EdgeAccuracyResult',
    'JointEdgeAccuracy',
    'Relabelling',
    'RolloutMSE',
    'relative_law_error',
]
