"""The passes by their ``ktir-opt`` names, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

Factory = Callable[[], type[ModulePass]]

CLASSES = {
    "ktir-import-cleanup": "import_cleanup.ImportCleanupPass",
    "ktir-fold-constants": "fold_constants.FoldConstantsPass",
    "ktir-fuse": "fuse.FusePass",
    "ktir-assign-layout": "assign_layout.AssignLayoutPass",
    "ktir-split-cores": "split_cores.SplitCoresPass",
    "ktir-tile": "tile.TilePass",
    "ktir-place": "place.PlacePass",
    "ktir-lower-to-ktdp": "lower_to_ktdp.LowerToKtdpPass",
    "ktir-allocate-scratchpad": "allocate_scratchpad.AllocateScratchpadPass",
    "ktir-allocate-global": "allocate_global.AllocateGlobalPass",
    "ktir-canonicalize": "canonicalize.KtirCanonicalizePass",
    "ktir-migrate": "migrate.MigratePass",
    "ktir-check-inter-tile": "check_inter_tile.CheckInterTilePass",
    "ktir-check-legality": "check_inter_tile.CheckLegalityPass",
    "ktir-check-agreement": "check_agreement.CheckAgreementPass",
    "ktir-check-alignment": "check_alignment.CheckAlignmentPass",
    "ktir-check-bounds": "check_bounds.CheckBoundsPass",
    "ktir-check-coverage": "check_coverage.CheckCoveragePass",
    "ktir-check-initialisation": "check_initialisation.CheckInitialisationPass",
    "ktir-check-limits": "check_limits.CheckLimitsPass",
    "ktir-check-ownership": "check_ownership.CheckOwnershipPass",
    "ktir-check-placement": "check_placement.CheckPlacementPass",
    "ktir-check-races": "check_races.CheckRacesPass",
    "ktir-check-scratchpad": "check_scratchpad.CheckScratchpadPass",
}
"""Where each pass is, below this folder; in the order of the standard pipeline, those that only check last."""


def all_passes() -> dict[str, Factory]:
    """Name and loader of every pass of this layer."""
    return {name: partial(_load, *place.split(".")) for name, place in CLASSES.items()}


def _load(module: str, kind: str) -> type[ModulePass]:
    return getattr(import_module(f"ktir.passes.{module}"), kind)
