"""PyG's LightningDataset with our data sets, and with a module of ours.

    python scripts/examples/lightning_data.py

Any splits that are PyG data sets make a Lightning data module, whose loaders
are PyG's. Trains a small fNRI for a few steps.
"""
import argparse
from typing import Optional

import pytorch_lightning as pl
from torch_geometric.data.lightning import LightningDataset

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', default='datasets', metavar='DIR')
    parser.add_argument('--max-steps', type=int, default=20)
    args = parser.parse_args(argv)
    pl.seed_everything(0)
    train, val = (ParticleSystems(args.root, 'springs_charges', split,
                                  num_systems=(64, 32, 1),
                                  transform=SplitTrajectory(49))
                  for split in ('train', 'val'))
    module = build_module(
        Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
               options={'hidden_channels': 16}))
    module.fit_units(train.x)
    trainer = pl.Trainer(accelerator='cpu', max_steps=args.max_steps,
                         logger=False, enable_checkpointing=False,
                         enable_progress_bar=False)
    datamodule = LightningDataset(train, val, batch_size=16)
    trainer.fit(module, datamodule)
    metrics, = trainer.validate(module, datamodule, verbose=False)
    print(f"{trainer.global_step} steps, validation loss "
          f"{metrics['val_loss']:.0f}")


if __name__ == '__main__':
    main()
