"""`pyg-fnri em`, from a checkout."""
from pyg_fnri.commands.em import main

if __name__ == '__main__':
    main()
