"""Fixtures for metrics."""
import pytest
import torch


@pytest.fixture
def as_two_processes():
    """Gives the result of two processes that each saw some of the batches;
    the second one's states are handed to the first as a gather would."""
    def joined(state):
        return torch.cat(state) if isinstance(state, list) else state.clone()

    def compute(make_metric, batches):
        def gather(state, group=None):
            return next(gathered)

        first = make_metric(dist_sync_fn=gather,
                            distributed_available_fn=lambda: True)
        second = make_metric()
        first.update(*batches[0])
        for batch in batches[1:]:
            second.update(*batch)
        gathered = iter(
            [[joined(getattr(first, name)),
              joined(getattr(second, name))] for name in first._defaults])
        return first.compute()

    return compute
