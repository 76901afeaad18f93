"""Terms that laws take in, as held-out systems are then more likely."""
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.laws.disentangle import MAX_ROUNDS, REANNEALING, explains_all
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.laws.missing_terms import (MIN_SIZE, Estimate, clearly_above,
                                         find_missing_terms, leaves_unexplained,
                                         mean_of_systems)
from pyg_fnri.laws.starts import (FINER, GRAVITY, ONE_WAY, Candidate, Pilot,
                                  later_scores, num_seen, seen_transitions)

#: Distances in the finest tables.
MAX_KNOTS = 101
#: The least gain that counts, as a share of what laws explain: without noise,
#: trifles gain as well.
MIN_SHARE = 0.01
#: The fewest held-out systems that tell several terms from chance.
MIN_SYSTEMS = 20
#: Transitions that say how much a term changes.
NUM_LOOKED_AT = 16
#: The held-out cost of laws that explain little, in nat per number.
LITTLE = -0.5
#: What hides other terms, and is fitted along with random graphs if central
#: laws alone lead nowhere.
FROM_THE_START = ('drag', 'turning', 'response', ONE_WAY)


class Step(NamedTuple):
    """A term that was tried: what it changes, in typical changes by forces, by
    how much held-out systems are more likely with it, in nat per number, and
    whether it stayed."""
    term: str
    size: float
    lead: Estimate
    kept: bool


def select_terms(
    pilot: Pilot, best: Candidate, names: Sequence[str],
    annealing: Sequence[AnnealingStep], max_starts: int = 5,
    on_step: Callable[[Step], None] | None = None
) -> tuple[Candidate, list[Step]]:
    """Adds to laws the terms by which held-out systems get more likely, one at
    a time. Of those that the laws seem to lack, each is fitted along with laws
    and graphs, and the best stays if it leads, paired by system, by more than
    two standard errors and by more than a trifle. Where much is unexplained all
    the same, laws start anew from random graphs with several terms, and those
    that do not lead go."""
    steps = list[Step]()
    if len(best.scores.laws) < 2:
        return best, steps
    given = best.terms

    def note(names: Sequence[str], more: Candidate, less: Candidate) -> bool:
        """Notes whether laws with some terms lead over those without."""
        gain, size = lead(more, less), _size(pilot, names, more)
        kept = size >= MIN_SIZE and clearly_above(gain,
                                                  MIN_SHARE * -more.scores.cost)
        steps.append(Step(' + '.join(names), size, gain, kept))
        if on_step is not None:
            on_step(steps[-1])
        return kept

    def lead(better: Candidate, worse: Candidate) -> Estimate:
        return mean_of_systems(worse.scores.laws - better.scores.laws)

    def forward(best: Candidate, all_of_them: bool = False) -> Candidate:
        while True:
            trials = []
            for name in _missing(pilot, best, names, all_of_them):
                pilot.adopt(best)
                pilot.add(name)
                pilot.fit.anneal(REANNEALING, pilot.generator)
                trials.append((name, pilot.judged()))
            if not trials:
                return best
            name, trial = max(trials, key=lambda t: lead(t[1], best).mean)
            if not note([name], trial, best):
                return best
            best = trial

    def backward(best: Candidate) -> Candidate:
        for name in (*best.terms, ONE_WAY):
            if name in given or name == ONE_WAY and (best.undirected
                                                     or was_directed):
                continue
            pilot.adopt(best)
            pilot.drop(name)
            pilot.fit.anneal(REANNEALING, pilot.generator)
            trial = pilot.judged()
            best = best if note([name], best, trial) else trial
        return best

    def together(best: Candidate) -> Candidate:
        """Starts anew with several terms, of which those that lead stay."""
        pilot.adopt(best)
        several = [
            name for name in FROM_THE_START
            if name in names and name not in best.terms
            and not (name == ONE_WAY and was_directed)
        ]
        if not several or len(best.scores.laws) < MIN_SYSTEMS:
            return best
        for name in several:
            pilot.add(name)
        _, trial, _ = pilot.start(range(1, max_starts + 1), annealing,
                                  MAX_ROUNDS)
        if trial is None:
            return best
        return trial if note(several, trial, best) else best

    was_directed = not best.undirected
    pilot.adopt(best)
    # Where laws explain hardly anything, no term alone mends them; but where
    # noise is strong, no more can be explained.
    if best.scores.cost < LITTLE or not leaves_unexplained(
            pilot.judge, pilot.judge.search.channels):
        best = forward(best)
    pilot.adopt(best)
    if leaves_unexplained(pilot.judge, pilot.judge.search.channels):
        best = forward(together(best), len(best.scores.laws) >= MIN_SYSTEMS)
    turned = not (best.undirected or was_directed)
    if len(best.terms) - len(given) + turned > 1:
        best = backward(best)  # What led early may be of no use in the end.
    return best, steps


def _size(pilot: Pilot, names: Sequence[str], candidate: Candidate) -> float:
    """What laws say differently without some terms, in typical changes by
    forces, a mean."""
    def explained() -> Tensor:
        fit = pilot.fit
        every = max(1, fit.transitions.change.size(1) // NUM_LOOKED_AT)
        evidence = fit.evidence(fit.transitions.thinned(every))
        return evidence.errors(fit.search.channels)

    pilot.adopt(candidate)
    before = explained()
    for name in names:
        pilot.drop(name)
    return (explained() - before).abs().mean().item()


def _missing(pilot: Pilot, best: Candidate, names: Sequence[str],
             all_of_them: bool) -> list[str]:
    """Terms that laws seem to lack; all, where laws and graphs may hide what
    they lack."""
    def leads(judge: LawFit) -> bool:
        gain = mean_of_systems(best.scores.laws - later_scores(judge).laws)
        return clearly_above(gain, MIN_SHARE * -best.scores.cost)

    pilot.adopt(best)
    judge = pilot.judge
    known = [
        name for name in names
        if name in pilot.fit.layer.candidates() and name not in best.terms
    ]
    seen = torch.zeros_like(judge.transitions.valid)
    seen[:, :num_seen(judge.transitions)] = True
    channels = judge.search.channels
    if all_of_them and leaves_unexplained(judge, channels):
        missing = known
    else:
        found = find_missing_terms(judge, channels, seen, known)
        missing = [finding.name for finding in found]
    masses_differ = bool((judge.mass != judge.mass[0]).any())
    if GRAVITY in names and GRAVITY not in best.terms and masses_differ:
        missing.append(GRAVITY)
    if best.undirected and ONE_WAY in names:
        # Whether some directions are better left out.
        pilot.turn(undirected=False)
        judge = pilot.judge
        evidence = judge.evidence(seen_transitions(judge.transitions))
        judge.search.sweep(evidence, judge.bounded(REANNEALING[-1], evidence))
        if leads(judge):
            missing.append(ONE_WAY)
    pilot.adopt(best)
    if (FINER in names and best.num_knots < MAX_KNOTS
            and not explains_all(pilot.judge.evidence(), channels)):
        pilot.add(FINER)
        pilot.fit.maximise(REANNEALING[-1], pilot.generator)
        if leads(pilot.judge):
            missing.append(FINER)
    return missing
