"""`pyg-fnri infer`, from a checkout."""
from pyg_fnri.commands.infer import main

if __name__ == '__main__':
    main()
