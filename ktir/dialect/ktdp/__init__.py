"""The ``ktdp`` dialect: memory views, access tiles and operations between compute tiles."""

from xdsl.ir import Dialect

from ktir.dialect.ktdp.attrs import (
    GLOBAL,
    MemorySpace,
    MemorySpaceAttr,
    MemorySpaceAttribute,
    SpyreMemorySpaceAttr,
    StickLayoutAttr,
    memory_space_of,
)
from ktir.dialect.ktdp.ops import (
    ConstructAccessTileOp,
    ConstructDistributedMemoryViewOp,
    ConstructIndirectAccessTileOp,
    ConstructMemoryViewOp,
    GetComputeTileIdOp,
    InterTileConsumeOp,
    InterTileProduceOp,
    InterTileReduceOp,
    LoadOp,
    MixedIndex,
    RegionTerminatorOp,
    RuntimeArgExtractOp,
    StoreOp,
    YieldPartialOp,
    YieldReducedOp,
)
from ktir.dialect.ktdp.types import AccessTileType, RuntimeArgType, TileFutureType

__all__ = [
    "GLOBAL",
    "KTDP",
    "AccessTileType",
    "ConstructAccessTileOp",
    "ConstructDistributedMemoryViewOp",
    "ConstructIndirectAccessTileOp",
    "ConstructMemoryViewOp",
    "GetComputeTileIdOp",
    "InterTileConsumeOp",
    "InterTileProduceOp",
    "InterTileReduceOp",
    "LoadOp",
    "MemorySpace",
    "MemorySpaceAttr",
    "MemorySpaceAttribute",
    "MixedIndex",
    "RegionTerminatorOp",
    "RuntimeArgExtractOp",
    "RuntimeArgType",
    "SpyreMemorySpaceAttr",
    "StickLayoutAttr",
    "StoreOp",
    "TileFutureType",
    "YieldPartialOp",
    "YieldReducedOp",
    "memory_space_of",
]

KTDP = Dialect(
    "ktdp",
    [
        GetComputeTileIdOp,
        ConstructMemoryViewOp,
        ConstructDistributedMemoryViewOp,
        ConstructAccessTileOp,
        ConstructIndirectAccessTileOp,
        RegionTerminatorOp,
        LoadOp,
        StoreOp,
        RuntimeArgExtractOp,
        InterTileProduceOp,
        InterTileConsumeOp,
        InterTileReduceOp,
        YieldPartialOp,
        YieldReducedOp,
    ],
    [SpyreMemorySpaceAttr, MemorySpaceAttr, StickLayoutAttr, AccessTileType, RuntimeArgType, TileFutureType],
)
