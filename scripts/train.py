"""`pyg-fnri train`, from a checkout."""
from pyg_fnri.commands.train import main

if __name__ == '__main__':
    main()
