"""The matrix unit: a stationary block, accumulators in f32, and what streams through."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def

from ktir.dialect.dfp.attributes import Value, check_positive, integer
from ktir.dialect.dfp.structure import UnitOperation
from ktir.dialect.dfp.types import QueueType


class PeOperation(UnitOperation):
    """Base of the matrix unit's operations: accumulators are ``rows x n`` in f32, stationary is ``k x n``."""

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class PeLoadOp(PeOperation):
    """Pops a stationary block of ``k x n`` elements, row-major; it replaces the former one."""

    name = "dfp.pe_load"
    queue = operand_def(QueueType())
    k = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, k: int, n: int, element: Attribute) -> None:
        super().__init__(operands=[queue], properties={"k": integer(k), "n": integer(n), "element": element})

    def verify_(self) -> None:
        check_positive(self, k=self.k.value.data, n=self.n.value.data)


@irdl_op_definition
class PeClearOp(PeOperation):
    """Sets ``rows x n`` accumulators to zero."""

    name = "dfp.pe_clear"
    rows = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    assembly_format = "attr-dict"

    def __init__(self, *, rows: int, n: int) -> None:
        super().__init__(properties={"rows": integer(rows), "n": integer(n)})

    def verify_(self) -> None:
        check_positive(self, rows=self.rows.value.data, n=self.n.value.data)


class PeRowsOperation(PeOperation):
    """Base of what moves ``rows x n`` accumulators to or from a queue."""

    queue = operand_def(QueueType())
    rows = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, rows: int, n: int, element: Attribute) -> None:
        super().__init__(operands=[queue], properties={"rows": integer(rows), "n": integer(n), "element": element})

    def verify_(self) -> None:
        check_positive(self, rows=self.rows.value.data, n=self.n.value.data)


@irdl_op_definition
class PePreloadOp(PeRowsOperation):
    """Pops ``rows x n`` elements into the accumulators."""

    name = "dfp.pe_preload"


@irdl_op_definition
class PeEmitOp(PeRowsOperation):
    """Pushes ``rows x n`` accumulators, rounded once to ``element``; they keep their values."""

    name = "dfp.pe_emit"


@irdl_op_definition
class PeMacOp(PeOperation):
    """Pops ``rows x k`` elements and adds their product with the stationary block to the accumulators."""

    name = "dfp.pe_mac"
    queue = operand_def(QueueType())
    rows = prop_def(IntegerAttr[IntegerType])
    k = prop_def(IntegerAttr[IntegerType])
    n = prop_def(IntegerAttr[IntegerType])
    element = prop_def(Attribute)
    assembly_format = "$queue attr-dict"

    def __init__(self, queue: Value, *, rows: int, k: int, n: int, element: Attribute) -> None:
        super().__init__(
            operands=[queue],
            properties={"rows": integer(rows), "k": integer(k), "n": integer(n), "element": element},
        )

    def verify_(self) -> None:
        check_positive(self, rows=self.rows.value.data, k=self.k.value.data, n=self.n.value.data)
