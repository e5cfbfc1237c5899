"""The passes by their ``ktir-opt`` names, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass

Factory = Callable[[], type[ModulePass]]


def _import_cleanup() -> type[ModulePass]:
    from ktir.passes.import_cleanup import ImportCleanupPass

    return ImportCleanupPass


def _fold_constants() -> type[ModulePass]:
    from ktir.passes.fold_constants import FoldConstantsPass

    return FoldConstantsPass


def _fuse() -> type[ModulePass]:
    from ktir.passes.fuse import FusePass

    return FusePass


def _assign_layout() -> type[ModulePass]:
    from ktir.passes.assign_layout import AssignLayoutPass

    return AssignLayoutPass


def _split_cores() -> type[ModulePass]:
    from ktir.passes.split_cores import SplitCoresPass

    return SplitCoresPass


def _tile() -> type[ModulePass]:
    from ktir.passes.tile import TilePass

    return TilePass


def _place() -> type[ModulePass]:
    from ktir.passes.place import PlacePass

    return PlacePass


def _lower_to_ktdp() -> type[ModulePass]:
    from ktir.passes.lower_to_ktdp import LowerToKtdpPass

    return LowerToKtdpPass


def _allocate_scratchpad() -> type[ModulePass]:
    from ktir.passes.allocate_scratchpad import AllocateScratchpadPass

    return AllocateScratchpadPass


def _allocate_global() -> type[ModulePass]:
    from ktir.passes.allocate_global import AllocateGlobalPass

    return AllocateGlobalPass


def _canonicalize() -> type[ModulePass]:
    from ktir.passes.canonicalize import KtirCanonicalizePass

    return KtirCanonicalizePass


def _migrate() -> type[ModulePass]:
    from ktir.passes.migrate import MigratePass

    return MigratePass


def _check_inter_tile() -> type[ModulePass]:
    from ktir.passes.check_inter_tile import CheckInterTilePass

    return CheckInterTilePass


def _check_legality() -> type[ModulePass]:
    from ktir.passes.check_inter_tile import CheckLegalityPass

    return CheckLegalityPass


def all_passes() -> dict[str, Factory]:
    """Every pass of this layer, in the order of the standard pipeline."""
    return {
        "ktir-import-cleanup": _import_cleanup,
        "ktir-fold-constants": _fold_constants,
        "ktir-fuse": _fuse,
        "ktir-assign-layout": _assign_layout,
        "ktir-split-cores": _split_cores,
        "ktir-tile": _tile,
        "ktir-place": _place,
        "ktir-lower-to-ktdp": _lower_to_ktdp,
        "ktir-allocate-scratchpad": _allocate_scratchpad,
        "ktir-allocate-global": _allocate_global,
        "ktir-canonicalize": _canonicalize,
        "ktir-migrate": _migrate,
        "ktir-check-inter-tile": _check_inter_tile,
        "ktir-check-legality": _check_legality,
    }
