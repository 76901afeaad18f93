"""Force laws: fitted to graphs, found from scratch, disentangled, checked."""
from pyg_fnri.laws.check import LawCheck, check_laws, prediction_cost
from pyg_fnri.laws.discovery import Discovery, discover_force_laws
from pyg_fnri.laws.errors import HALF_WIDTH, law_covariance
from pyg_fnri.laws.fit import EM_ANNEALING, Progress, fit_force_laws
from pyg_fnri.laws.formulas import Formula, best_formula
from pyg_fnri.laws.starts import Start
from pyg_fnri.laws.strengths import Strengths, fit_strengths

__all__ = [
    'Discovery', 'EM_ANNEALING', 'Formula', 'HALF_WIDTH', 'LawCheck',
    'Progress', 'Start', 'Strengths', 'best_formula', 'check_laws',
    'discover_force_laws', 'fit_force_laws', 'fit_strengths', 'law_covariance',
    'prediction_cost'
]
