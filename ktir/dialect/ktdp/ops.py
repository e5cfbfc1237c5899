"""All operations of the ``ktdp`` dialect, which the files beside this one define by group."""

from ktir.dialect.ktdp.indirect_tiles import ConstructIndirectAccessTileOp, RegionTerminatorOp
from ktir.dialect.ktdp.inter_tile import (
    InterTileConsumeOp,
    InterTileProduceOp,
    InterTileReduceOp,
    YieldPartialOp,
    YieldReducedOp,
)
from ktir.dialect.ktdp.launch import GetComputeTileIdOp, RuntimeArgExtractOp
from ktir.dialect.ktdp.memory import LoadOp, StoreOp
from ktir.dialect.ktdp.syntax import MixedIndex
from ktir.dialect.ktdp.tiles import ConstructAccessTileOp
from ktir.dialect.ktdp.views import ConstructDistributedMemoryViewOp, ConstructMemoryViewOp

__all__ = [
    "ConstructAccessTileOp",
    "ConstructDistributedMemoryViewOp",
    "ConstructIndirectAccessTileOp",
    "ConstructMemoryViewOp",
    "GetComputeTileIdOp",
    "InterTileConsumeOp",
    "InterTileProduceOp",
    "InterTileReduceOp",
    "LoadOp",
    "MixedIndex",
    "RegionTerminatorOp",
    "RuntimeArgExtractOp",
    "StoreOp",
    "YieldPartialOp",
    "YieldReducedOp",
]
