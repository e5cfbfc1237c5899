"""Share equal operations of one block.

Two operations are equal when they have the same name, operands, attributes, result types and regions. Only for blocks
of values without effects, such as graphs.
"""

from __future__ import annotations

from xdsl.ir import Block, IRNode, Operation, SSAValue


def share_equal(block: Block) -> None:
    """Replace every operation by the first one that is equal to it."""
    seen: dict[tuple[object, ...], list[Operation]] = {}
    for op in list(block.ops):
        if not op.results:
            continue
        key = _key(op)
        first = next((each for each in seen.get(key, ()) if _same_regions(each, op)), None)
        if first is None:
            seen.setdefault(key, []).append(op)
            continue
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()


def _key(op: Operation) -> tuple[object, ...]:
    properties, attributes = (tuple(sorted(each.items())) for each in (op.properties, op.attributes))
    return op.name, tuple(op.operands), tuple(op.result_types), _hashable(properties), _hashable(attributes)


def _hashable(entries: tuple[tuple[str, object], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in entries)


def _same_regions(one: Operation, other: Operation) -> bool:
    context: dict[IRNode | SSAValue, IRNode | SSAValue] = dict(zip(one.operands, other.operands, strict=True))
    return all(
        mine.is_structurally_equivalent(yours, dict(context))
        for mine, yours in zip(one.regions, other.regions, strict=True)
    )
