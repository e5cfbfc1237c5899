"""Attributes of the ``ktdp`` dialect: where a view lies, and how a buffer is laid out in sticks.

Two generations of text name the same two memories. The old names devices (``HBM`` off chip, ``LX`` and ``L0`` beside a
core), the new names who sees it (``global``, ``ct_local``). Both are kept as written; :class:`MemorySpace` is the one
answer to where the bytes are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ktir.errors import IllegalLayout
from ktir.maths.stick_layout import DeviceDim, Pad, StickLayout

LAYOUT = "ktdp.stick_layout"
"""The discardable attribute that says how a tensor lies in sticks."""
ADDRESS = "ktdp.address"
"""The discardable attribute of a buffer that has its place, in bytes."""

NOT_GIVEN = -1
"""A core number that the text leaves out."""


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """Which memory. ``core`` is the compute tile whose scratchpad is meant; None is the executing one's own."""

    kind: Literal["global", "ct_local"]
    core: int | None = None


GLOBAL = MemorySpace("global")


class MemorySpaceAttribute(ParametrizedAttribute):
    """What both generations of memory-space attributes answer."""

    @property
    @abstractmethod
    def space(self) -> MemorySpace:
        """The memory that is meant."""


def _parse_space(parser: AttrParser, names: Sequence[str], number_keyword: str) -> list[Attribute]:
    """``<NAME>`` or ``<NAME, keyword = N>``"""
    with parser.in_angle_brackets():
        position = parser.pos
        name = parser.parse_identifier()
        if name not in names:
            parser.raise_error(f"expected one of {', '.join(names)}, but got: {name}", position)
        number = NOT_GIVEN
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword(number_keyword)
            parser.parse_punctuation("=")
            number = parser.parse_integer(allow_boolean=False)
        return [StringAttr(name), IntAttr(number)]


def _print_space(printer: Printer, name: str, number_keyword: str, number: int) -> None:
    with printer.in_angle_brackets():
        printer.print_string(name if number == NOT_GIVEN else f"{name}, {number_keyword} = {number}")


@irdl_attr_definition
class SpyreMemorySpaceAttr(MemorySpaceAttribute):
    """The old spelling, ``#ktdp.spyre_memory_space<LX, core = 3>``."""

    name = "ktdp.spyre_memory_space"
    NAMES: ClassVar = ("unspecified", "LX", "HBM", "L0")
    PRIVATE: ClassVar = ("LX", "L0")

    device: StringAttr
    core: IntAttr

    def __init__(self, device: str | StringAttr, core: int | IntAttr = NOT_GIVEN) -> None:
        super().__init__(
            StringAttr(device) if isinstance(device, str) else device, IntAttr(core) if isinstance(core, int) else core
        )

    @classmethod
    def of(cls, space: MemorySpace) -> SpyreMemorySpaceAttr:
        if space.kind == "global":
            return cls("HBM")
        return cls("LX", NOT_GIVEN if space.core is None else space.core)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return _parse_space(parser, cls.NAMES, "core")

    def print_parameters(self, printer: Printer) -> None:
        _print_space(printer, self.device.data, "core", self.core.data)

    def verify(self) -> None:
        core = self.core.data
        if core < NOT_GIVEN:
            raise VerifyException(f"core affinity must be non-negative, but got: {core}")
        if core != NOT_GIVEN and self.device.data not in self.PRIVATE:
            raise VerifyException(
                "core affinity is only valid for LX or L0 memory spaces, but got memory space "
                f"'{self.device.data}' with core = {core}"
            )

    @property
    def space(self) -> MemorySpace:
        if self.device.data not in self.PRIVATE:
            return GLOBAL
        return MemorySpace("ct_local", None if self.core.data == NOT_GIVEN else self.core.data)


@irdl_attr_definition
class MemorySpaceAttr(MemorySpaceAttribute):
    """The new spelling, ``#ktdp.memory_space<ct_local, ct_id = 3>``."""

    name = "ktdp.memory_space"
    NAMES: ClassVar = ("global", "ct_local")

    visibility: StringAttr
    ct_id: IntAttr

    def __init__(self, visibility: str | StringAttr, ct_id: int | IntAttr = NOT_GIVEN) -> None:
        super().__init__(
            StringAttr(visibility) if isinstance(visibility, str) else visibility,
            IntAttr(ct_id) if isinstance(ct_id, int) else ct_id,
        )

    @classmethod
    def of(cls, space: MemorySpace) -> MemorySpaceAttr:
        return cls(space.kind, NOT_GIVEN if space.core is None else space.core)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return _parse_space(parser, cls.NAMES, "ct_id")

    def print_parameters(self, printer: Printer) -> None:
        _print_space(printer, self.visibility.data, "ct_id", self.ct_id.data)

    def verify(self) -> None:
        ct_id = self.ct_id.data
        if ct_id < NOT_GIVEN:
            raise VerifyException(f"ct_id must be non-negative, but got: {ct_id}")
        if ct_id != NOT_GIVEN and self.visibility.data == "global":
            raise VerifyException(
                f"ct_id is only valid for ct_local memory spaces, but got memory space 'global' with ct_id = {ct_id}"
            )

    @property
    def space(self) -> MemorySpace:
        if self.visibility.data == "global":
            return GLOBAL
        return MemorySpace("ct_local", None if self.ct_id.data == NOT_GIVEN else self.ct_id.data)


def memory_space_of(attribute: Attribute | None) -> MemorySpace:
    """The memory that an optional memory-space attribute means; none means global."""
    return attribute.space if isinstance(attribute, MemorySpaceAttribute) else GLOBAL


PAD_NAMES = ("undef", "zero", "neg_inf")


@irdl_attr_definition
class StickLayoutAttr(Data[StickLayout]):
    """How a buffer holds a tensor: ``#ktdp.stick_layout<[1 : 16 : 64, 0 : 67 : 1, 1 : 64 : 1], extent = [67, 1000]>``.

    The entries are device dimensions, outer to inner, each ``tensor dimension : size : step``; the last is the stick.
    ``pad`` says what the padding holds and is left out where nobody knows.
    """

    name = "ktdp.stick_layout"

    @property
    def layout(self) -> StickLayout:
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> StickLayout:
        with parser.in_angle_brackets():
            position = parser.pos
            dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_device_dim(parser))
            parser.parse_punctuation(",")
            parser.parse_keyword("extent")
            parser.parse_punctuation("=")
            extent = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_count(parser))
            pad = _parse_optional_pad(parser)
            try:
                return StickLayout(tuple(dims), tuple(extent), pad)
            except IllegalLayout as fault:
                parser.raise_error(fault.message, position)

    def print_parameter(self, printer: Printer) -> None:
        layout = self.data
        dims = ", ".join(f"{dim.tensor_dim} : {dim.size} : {dim.step}" for dim in layout.dims)
        pad = "" if layout.pad == "undef" else f", pad = {layout.pad}"
        with printer.in_angle_brackets():
            printer.print_string(f"[{dims}], extent = [{', '.join(map(str, layout.extent))}]{pad}")


def _parse_count(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


def _parse_device_dim(parser: AttrParser) -> DeviceDim:
    tensor_dim = _parse_count(parser)
    parser.parse_punctuation(":")
    size = _parse_count(parser)
    parser.parse_punctuation(":")
    return DeviceDim(tensor_dim, size, _parse_count(parser))


def _parse_optional_pad(parser: AttrParser) -> Pad:
    if parser.parse_optional_punctuation(",") is None:
        return "undef"
    parser.parse_keyword("pad")
    parser.parse_punctuation("=")
    for name in ("undef", "zero", "neg_inf"):
        if parser.parse_optional_keyword(name) is not None:
            return name
    if (value := parser.parse_optional_number()) is None:
        parser.raise_error(f"expected {', '.join(PAD_NAMES)} or a number for pad")
    return float(value)
