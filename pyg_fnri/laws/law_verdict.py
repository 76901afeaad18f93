"""What is to be said of force laws that have been put to the test."""
from dataclasses import dataclass
from typing import Optional

from pyg_fnri.inference.impulses import slip_message, slips
from pyg_fnri.inference.likelihood import Estimate
from pyg_fnri.laws.broken_assumptions import Finding

#: Differences below this, in nat per number, decide nothing.
MARGIN = 0.02
#: The most that laws may leave unexplained, unless it is noise.
MAX_UNEXPLAINED = 0.05
#: The most particles of which they may leave more than that.
MAX_PARTICLES = 0.1
#: Errors that go on for a while from frame to frame are so correlated; those
#: of noise change sign.
MIN_PERSISTENCE = 0.3


@dataclass(frozen=True)
class LawCheck:
    """Whether force laws hold, with the figures behind.

    Scores are negative log-likelihoods of single steps along frames that
    follow those that graphs were inferred from, in nat per feature; less is
    better.

    Args:
        laws: The score of the laws.
        networks: Of the networks in whose place the laws are.
        linear: Of a linear step, without any interaction.
        behind: Laws minus networks, paired by system.
        ahead: Linear step minus laws, likewise.
        unexplained: Median absolute error of the laws, as a share of that of
            the linear step.
        unexplained_by_networks: Likewise.
        particles: The share of particles of which the laws leave more than
            :obj:`MAX_UNEXPLAINED`: a median hides what concerns fewer than
            half of them.
        persistence: Correlation of the laws' errors of velocity in one step
            with those in the next, all clipped at three widths: about -0.5 of
            noise, positive where a force is missing or wrong.
        at_walls: Laws minus linear step in steps that meet a wall, by system;
            None where hardly any does.
        one_way: Laws minus the same laws on graphs whose two directions were
            inferred by themselves, by system; None where they are anyway.
        slope: Velocities in units of those given at which positions move.
        findings: What the laws' errors depend on.
        num_systems: How many systems were looked at.
    """
    laws: Estimate
    networks: Estimate
    linear: Estimate
    behind: Estimate
    ahead: Estimate
    unexplained: float
    unexplained_by_networks: float
    particles: float
    persistence: float
    at_walls: Optional[Estimate]
    one_way: Optional[Estimate]
    slope: float
    findings: tuple[Finding, ...]
    num_systems: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the laws."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """What speaks against them, a sentence each."""
        out = []
        if clearly_above(self.behind):
            out.append(
                f"The force laws predict held-out frames worse than the "
                f"networks they replaced ({self.laws.mean:.2f} against "
                f"{self.networks.mean:.2f}, a difference of "
                f"{self.behind.mean:.2f} ± {self.behind.error:.2f} nat a "
                f"feature).")
        if not clearly_above(self.ahead):
            out.append(
                f"The force laws predict held-out frames no better than a "
                f"linear step without interactions ({self.laws.mean:.2f} "
                f"against {self.linear.mean:.2f}, a difference of "
                f"{-self.ahead.mean:.2f} ± {self.ahead.error:.2f} nat a "
                f"feature).")
        if self._much_is_unexplained and not self._is_noise:
            much = f"{self.unexplained:.0%} of what forces do unexplained"
            if self.unexplained <= MAX_UNEXPLAINED:
                much = (f"more than {MAX_UNEXPLAINED:.0%} of what forces do "
                        f"unexplained in {self.particles:.0%} of the particles")
            out.append(
                f"The laws leave {much}, and that is no noise (it goes on from "
                f"frame to frame, with a correlation of "
                f"{self.persistence:.2f}): laws are missing, or many graphs "
                f"are wrong.")
        if self.one_way is not None and clearly_above(self.one_way):
            out.append(
                f"Laws predict better where each direction of a pair has a "
                f"type of its own, by {self.one_way.mean:.2f} ± "
                f"{self.one_way.error:.2f} nat a feature: some interactions "
                f"seem to be one-way. Train again with --directed.")
        if slips(self.slope):
            out.append(slip_message(self.slope))
        if self.at_walls is not None and clearly_above(self.at_walls):
            out.append("Particles are turned back as if by walls, where the "
                       "laws know of none; check half_width.")
        out += [f"It looks as if {finding}." for finding in self.findings]
        if clearly_above(self.behind) and len(out) == 1:
            out.append("Forces here may depend on velocity, point across the "
                       "line of a pair, or differ between particles; or "
                       "frames are too noisy.")
        return out

    @property
    def _much_is_unexplained(self) -> bool:
        return (self.unexplained > MAX_UNEXPLAINED
                or self.particles > MAX_PARTICLES)

    @property
    def _is_noise(self) -> bool:
        return self.persistence <= MIN_PERSISTENCE

    def __str__(self) -> str:
        figures = (
            f"held-out single steps of {self.num_systems} systems, in nat a "
            f"feature (less is better): laws {_text(self.laws)}, networks "
            f"{_text(self.networks)}, linear step {_text(self.linear)}; laws "
            f"leave {self.unexplained:.1%} of what forces do unexplained, "
            f"networks {self.unexplained_by_networks:.1%}")
        if self.unexplained > MAX_UNEXPLAINED and self._is_noise:
            figures += ("; what laws leave is noise, as it does not go on from "
                        "frame to frame")
        if self.holds:
            return f"The force laws hold: {figures}."
        return '\n'.join([
            "The force laws do NOT hold; do not trust laws or graphs.",
            *(f'  - {reason}' for reason in self.reasons), f'  ({figures})'
        ])


def clearly_above(value: Estimate) -> bool:
    """Whether a difference is above 0, and neither chance nor a trifle."""
    return value.mean > max(2 * value.error, MARGIN)


def _text(value: Estimate) -> str:
    return f'{value.mean:.2f} ± {value.error:.2f}'
