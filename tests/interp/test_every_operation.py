"""Every operation that a text may hold is either executed or refused with its name and place."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from docs.generate import executable_operations, operations_table, refused_operations
from ktir.errors import UnknownOperation
from ktir.interp.executor import execute


@pytest.mark.parametrize("kind", refused_operations(), ids=lambda kind: kind.name)
def test_what_cannot_be_executed_is_refused_by_name_and_place(kind: type[Operation]) -> None:
    function = FuncOp("k", ((), ()))
    op = kind.create()
    op.location = FileLineColLoc(StringAttr("f.ktir"), IntAttr(3), IntAttr(5))
    function.body.block.add_ops([op, ReturnOp()])
    with pytest.raises(UnknownOperation) as caught:
        execute(ModuleOp([function]), "k")
    assert kind.name in caught.value.message and caught.value.remedy
    assert caught.value.location is not None and caught.value.location.line == 3


def test_what_kernels_are_made_of_is_executed() -> None:
    executed = {kind.name for kind in executable_operations()}
    for dialect in ("arith", "ktdp", "scf"):
        assert not [kind.name for kind in refused_operations() if kind.name.startswith(f"{dialect}.")]
    assert {"linalg.matmul", "linalg.generic", "tensor.extract_slice", "math.exp", "affine.apply"} <= executed


def test_the_documentation_lists_all() -> None:
    page = operations_table()
    for kind in (*executable_operations(), *refused_operations()):
        assert f"`{kind.name}`" in page
