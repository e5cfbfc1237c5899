"""The dataflow program dialect: one program per hardware unit, linked by bounded queues and rings of tiles.

Operations by what they say: :mod:`structure <ktir.dialect.dfp.structure>`, :mod:`control <ktir.dialect.dfp.control>`,
:mod:`movement <ktir.dialect.dfp.movement>`, :mod:`ring <ktir.dialect.dfp.ring>`,
:mod:`vector <ktir.dialect.dfp.vector>` and :mod:`matrix <ktir.dialect.dfp.matrix>`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from ktir.dialect.dfp.attributes import integer, integers, values_of
from ktir.dialect.dfp.control import (
    AcquireOp,
    BarrierOp,
    CommitOp,
    ForOp,
    IfOp,
    ReleaseOp,
    ReserveOp,
    SlotOperation,
    TableOp,
)
from ktir.dialect.dfp.matrix import PeClearOp, PeEmitOp, PeLoadOp, PeMacOp, PeOperation, PePreloadOp, PeRowsOperation
from ktir.dialect.dfp.movement import (
    BoxSource,
    BoxTarget,
    CopyOp,
    DrainOp,
    GatherOp,
    IndirectOperation,
    ScatterOp,
    StreamOp,
)
from ktir.dialect.dfp.ring import ChainOp, MulticastOp, ReceiveOp, SendOp
from ktir.dialect.dfp.structure import BufferOp, ProgramOp, QueueOp, SymbolOp, UnitOp, UnitOperation
from ktir.dialect.dfp.types import BufferType, QueueType, SymbolType
from ktir.dialect.dfp.vector import FoldOperation, IndexOp, SfuMapOp, SfuReduceOp, SfuScanOp, YieldOp

DFP = Dialect(
    "dfp",
    [
        ProgramOp,
        SymbolOp,
        BufferOp,
        QueueOp,
        UnitOp,
        TableOp,
        ForOp,
        IfOp,
        BarrierOp,
        ReserveOp,
        CommitOp,
        AcquireOp,
        ReleaseOp,
        CopyOp,
        GatherOp,
        ScatterOp,
        StreamOp,
        DrainOp,
        SendOp,
        MulticastOp,
        ReceiveOp,
        ChainOp,
        YieldOp,
        SfuMapOp,
        IndexOp,
        SfuReduceOp,
        SfuScanOp,
        PeLoadOp,
        PeClearOp,
        PePreloadOp,
        PeEmitOp,
        PeMacOp,
    ],
    [BufferType, QueueType, SymbolType],
)

__all__ = [
    "DFP",
    "AcquireOp",
    "BarrierOp",
    "BoxSource",
    "BoxTarget",
    "BufferOp",
    "BufferType",
    "ChainOp",
    "CommitOp",
    "CopyOp",
    "DrainOp",
    "FoldOperation",
    "ForOp",
    "GatherOp",
    "IfOp",
    "IndexOp",
    "IndirectOperation",
    "MulticastOp",
    "PeClearOp",
    "PeEmitOp",
    "PeLoadOp",
    "PeMacOp",
    "PeOperation",
    "PePreloadOp",
    "PeRowsOperation",
    "ProgramOp",
    "QueueOp",
    "QueueType",
    "ReceiveOp",
    "ReleaseOp",
    "ReserveOp",
    "ScatterOp",
    "SendOp",
    "SfuMapOp",
    "SfuReduceOp",
    "SfuScanOp",
    "SlotOperation",
    "StreamOp",
    "SymbolOp",
    "SymbolType",
    "TableOp",
    "UnitOp",
    "UnitOperation",
    "YieldOp",
    "integer",
    "integers",
    "values_of",
]
