"""`python -m pyg_fnri.commands NAME ...`, without installation."""
from pyg_fnri.commands import main

main()
