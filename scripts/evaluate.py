"""`pyg-fnri evaluate`, from a checkout."""
from pyg_fnri.commands.evaluate import main

if __name__ == '__main__':
    main()
