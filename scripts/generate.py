"""`pyg-fnri generate`, from a checkout."""
from pyg_fnri.commands.generate import main

if __name__ == '__main__':
    main()
