"""Force laws: found from motion, fitted, taken apart, and checked."""
from pyg_fnri.laws.discovery import Discovery, Start, discover_force_laws
from pyg_fnri.laws.em import Progress, fit_force_laws
from pyg_fnri.laws.law_check import check_laws
from pyg_fnri.laws.law_verdict import LawCheck

__all__ = [
    'Discovery',
    'LawCheck',
    'Progress',
    'Start',
    'check_laws',
    'discover_force_laws',
    'fit_force_laws',
]
