import pytest
import torch

from pyg_fnri.recipes import draw_frames


def test_frames_in_focus_stand_for_all():
    generator = torch.Generator().manual_seed(0)
    residual = torch.randn(8, 20, 4)
    residual[2, 7] *= 50  # One frame of the first system.
    batch = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    frame, weight = draw_frames(residual, batch, 40_000, 0.5, generator)
    assert frame.shape == weight.shape == (8, 40_000)
    for system in (slice(0, 3), slice(3, 8)):  # Particles stay together.
        assert (frame[system] == frame[system][:1]).all()
    share = (frame[0] == 7).double().mean().item()
    assert share == pytest.approx(0.5 + 0.5 / 20, abs=0.02)
    assert (frame[3] == 7).double().mean() < 0.2
    # The weights make up for it: any sum comes out right on average.
    value = torch.rand(8, 20) + residual.square().sum(-1)
    drawn = (weight * value.gather(1, frame)).sum(1)
    torch.testing.assert_close(drawn, value.sum(1), rtol=0.05, atol=0)
