"""`pyg-fnri select-layers`, from a checkout."""
from pyg_fnri.commands.select_layers import main

if __name__ == '__main__':
    main()
