"""Whatever a text holds, reading it ends in verified IR that round-trips, or in a located error; and soon."""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ktir.dialect.text.parser import parse_module
from ktir.dialect.text.printer import print_module
from ktir.errors import KtirError
from tests.dialect.texts import EVERY_OPERATION, LOCATED, TOLERATED
from tests.settings import examples

SEEDS = [
    EVERY_OPERATION,
    LOCATED,
    *TOLERATED.values(),
    *(
        text
        for path in sorted((Path(__file__).parents[1] / "oracle" / "snippets").glob("*.mlir"))
        for text in re.split(r"^// -----.*\n", path.read_text(), flags=re.MULTILINE)
    ),
]
TOKEN = re.compile(r"[\w.$%#@!]+|\s+|.", re.DOTALL)
TOKENS = [token for text in SEEDS for token in TOKEN.findall(text)]
NUMBERS = ["0", "-1", "7", "0x7F", "4294967296", "9223372036854775808", "9" * 40]
CHARACTERS = ["\x00", "é", "\\", '"', "\n", "// ", *"()<>{}[]%#!^:?-="]
CHUNKS = 10
SECONDS = 2.0


def mutated(text: str, dice: random.Random) -> str:
    """``text`` with one to three changes of bytes, tokens, numbers or lines."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        change = dice.choice([change_token, change_number, insert_character, change_line, cut])
        text = change(text, dice) or "x"
    return text


def change_token(text: str, dice: random.Random) -> str:
    tokens = TOKEN.findall(text)
    at = dice.randrange(len(tokens))
    tokens[at : at + dice.choice([0, 1, 1])] = dice.choice([[], [dice.choice(TOKENS)]])
    return "".join(tokens)


def change_number(text: str, dice: random.Random) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    chosen = dice.choice(numbers)
    return text[: chosen.start()] + dice.choice(NUMBERS) + text[chosen.end() :]


def insert_character(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(CHARACTERS) + text[at:]


def change_line(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    line = lines.pop(dice.randrange(len(lines)))
    if dice.random() < 0.5:
        lines[dice.randrange(len(lines) + 1) : 0] = [line, line]
    return "\n".join(lines)


def cut(text: str, dice: random.Random) -> str:
    return text[: dice.randrange(len(text) + 1)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_texts_end_well(chunk: int) -> None:
    dice = random.Random(chunk)
    for _ in range(examples(20_000) // CHUNKS):
        check(mutated(dice.choice(SEEDS), dice))


def check(text: str) -> None:
    start = time.process_time()
    try:
        module = parse_module(text, "mutated")
    except KtirError as fault:
        assert fault.location is not None, fault
    else:
        for generic in (False, True):
            printed = print_module(module, generic=generic)
            assert parse_module(printed, "printed").is_structurally_equivalent(module), text
    assert time.process_time() - start < SECONDS + 2 * len(text) / 1e6, text


def garbage(size: int) -> Iterator[str]:
    dice = random.Random(0)
    yield "".join(dice.choice('abc%#{}[]()<>"/\\ \n') for _ in range(size))
    yield '"' * size
    yield "(" * size
    yield "a" * size
    yield "9" * size
    yield "// " * size
    yield "- " * (size // 2)
    yield '"' + "\\" * size
    yield "\n" * size
    yield "func.func private @f() attributes {a = affine_map<(d0) -> (" + "d0 + " * (size // 5) + "d0)>}"
    yield "func.func private @f() attributes {a = affine_map<(d0) -> (" + "-" * size + "d0)>}"


@pytest.mark.parametrize("text", [*garbage(1_000_000)], ids=range(11))
def test_a_megabyte_of_garbage_is_refused_soon(text: str) -> None:
    check(text)
