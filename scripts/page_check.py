"""Do pages of reports open in a browser? Each is loaded in headless Chromium, without a network, light and dark.

    python scripts/page_check.py [PAGE.html...] [--pictures DIR]

Without pages, those of the cases in ``spec/cases`` are made and checked. A page passes when

* the browser logs nothing and no script fails, and the page asks for nothing but itself;
* every table has rows, every figure and the timeline have a size, and their pictures have more than a background;
* text is at least 4.5 times as bright as its background or the other way round (WCAG 2.1, 1.4.3);
* nothing but what scrolls by itself is wider than the window, from 700 to 1600 pixels;
* a click on a heading sorts, the pointer over the timeline tells what is there, and marks have titles.

Needs Chromium (Debian: ``apt-get install chromium``; ``CHROMIUM`` names another one). Exits with 1 when a page fails,
with 2 when there is no browser.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "spec" / "cases"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--mute-audio"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    "--remote-debugging-pipe",
)
NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND"
WIDTHS = (1600, 1100, 700)
TABLES = ("findings", "units", "kernels", "byunit", "spots", "facts")
FIGURES = ("roofline", "scratchpad", "cores")
LEAST_CONTRAST = 4.5
LEAST_COLOURS = 12
"""Of a picture with something on it: text alone has more shades."""

PROBES = Path(__file__).with_name("page_probe.js")


@dataclass
class Browser:
    """A running Chromium, spoken to in its debugging protocol: JSON messages, each ended by a zero byte."""

    sending: int
    receiving: int
    session: str = ""
    number: int = 0
    rest: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns its result; events that come before it are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.sending, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, event: str) -> None:
        """Reads until ``event`` has come."""
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self._message())

    def ask(self, probe: str, *arguments: Any) -> Any:
        """What a function of ``page_probe.js`` gives in the page."""
        call = f"probes.{probe}({', '.join(json.dumps(each) for each in arguments)})"
        expression = f"(() => {{ {PROBES.read_text(encoding='utf-8')}\nreturn {call}; }})()"
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "a script failed"))
        return result["result"].get("value")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            data = os.read(self.receiving, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(program: str) -> Generator[Browser]:
    """A browser with a profile of its own, ended at the end."""
    from_us, ours = os.pipe()
    theirs, from_them = os.pipe()[::-1]
    os.set_inheritable(from_us, True)
    os.set_inheritable(theirs, True)
    with tempfile.TemporaryDirectory(prefix="ktir-page-") as profile:
        shell = f'exec "$@" 3<&{from_us} 4>&{theirs}'
        words = ["sh", "-c", shell, "sh", program, *FLAGS, NOWHERE, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            words, pass_fds=(from_us, theirs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(from_us)
        os.close(theirs)
        try:
            yield Browser(ours, from_them)
        finally:
            process.terminate()
            process.wait()
            os.close(ours)
            os.close(from_them)


def check(chromium: Browser, page: Path, pictures: Path | None) -> list[str]:
    """What is wrong with a page."""
    chromium.session = ""
    target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
    chromium.session = chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    chromium.events.clear()
    for domain in ("Page", "Runtime", "Log", "Network"):
        chromium.call(f"{domain}.enable")
    wrong: list[str] = []
    grounds: list[str] = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        chromium.call("Emulation.setEmulatedMedia", features=[feature])
        _resize(chromium, WIDTHS[0], 2400)
        chromium.events[:] = [each for each in chromium.events if each.get("method") != "Page.loadEventFired"]
        chromium.call("Page.navigate", url=page.resolve().as_uri())
        chromium.wait_for("Page.loadEventFired")
        try:
            found = chromium.ask("parts", TABLES, FIGURES, LEAST_CONTRAST)
        except RuntimeError as error:
            return [*wrong, f"{scheme}: a part is missing: {error}"]
        grounds.append(found["page"])
        wrong += [f"{scheme}: {fault}" for fault in _faults(found)]
        picture = chromium.call("Page.captureScreenshot", format="png")["data"]
        if pictures is not None:
            (pictures / f"{page.stem}.{scheme}.png").write_bytes(base64.b64decode(picture))
        if chromium.ask("coloursOfPicture", picture) < LEAST_COLOURS:
            wrong.append(f"{scheme}: the picture of the page is blank")
    if grounds[0] == grounds[1]:
        wrong.append("light and dark look the same")
    try:
        if not chromium.ask("sorts"):
            wrong.append("a click on a heading does not sort")
        if "at work" not in chromium.ask("pointed"):
            wrong.append("the timeline tells nothing under the pointer")
    except RuntimeError as error:
        wrong.append(f"the page cannot be used: {error}")
    for width in WIDTHS:
        _resize(chromium, width, 1200)
        if wider := chromium.ask("wider"):
            wrong.append(f"at {width} pixels the page is {wider} too wide")
    wrong += _heard(chromium.events, page)
    session, chromium.session = chromium.session, ""
    chromium.call("Target.closeTarget", targetId=target)
    chromium.session = session
    return wrong


def _resize(chromium: Browser, width: int, height: int) -> None:
    chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def _faults(found: dict[str, Any]) -> Iterator[str]:
    for name, table in found["tables"].items():
        if table is None or min(table) <= 0:
            yield f"table {name} is {'missing' if table is None else 'empty'}"
    for name, figure in found["figures"].items():
        if figure is None:
            yield f"figure {name} is missing"
        elif "note" in figure:
            if not figure["note"]:
                yield f"figure {name} is empty and does not say why"
        elif min(*figure["size"], figure["marks"], figure["titles"], figure["texts"]) <= 0 or not figure["label"]:
            yield f"figure {name} lacks something: {figure}"
    timeline = found["timeline"]
    if min(timeline["size"]) <= 0 or timeline["colours"] < LEAST_COLOURS:
        yield f"the timeline is blank: {timeline}"
    for what, ratio in found["contrast"][:3]:
        yield f"{what} has a contrast of {ratio}"
    for url in found["requests"]:
        yield f"the page loads {url}"


def _heard(events: Sequence[dict[str, Any]], page: Path) -> Iterator[str]:
    """What the browser said and asked for on the way."""
    for event in events:
        method, parameters = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            yield f"a script fails: {details.get('exception', {}).get('description', details.get('text'))}"
        elif method == "Runtime.consoleAPICalled":
            yield f"the console says: {[each.get('value') for each in parameters['args']]}"
        elif method == "Log.entryAdded":
            yield f"the browser says: {parameters['entry']['text']}"
        elif method == "Network.requestWillBeSent":
            url = str(parameters["request"]["url"])
            if url != page.resolve().as_uri() and not url.startswith("data:"):
                yield f"the page asks for {url}"


def made_pages(folder: Path) -> list[Path]:
    """Pages of the cases."""
    from ktir.tools import ktir_main

    pages: list[Path] = []
    for case in sorted(CASES.glob("*.ktir")):
        pages.append(folder / f"{case.stem}.html")
        words = ["run", str(case), "--report", str(pages[-1]), "--json"]
        with open(os.devnull, "w") as nowhere:
            before, sys.stdout = sys.stdout, nowhere
            try:
                status = ktir_main.main(words)
            finally:
                sys.stdout = before
        if status:
            raise SystemExit(f"ktir {' '.join(words)} failed")
    return pages


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Load pages of reports in headless Chromium and look at them.")
    parser.add_argument("pages", nargs="*", type=Path, help="default: those of the cases in spec/cases")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="keep what the pages look like, as PNG")
    options = parser.parse_args(words)
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or shutil.which(program) is None:
        print("there is no Chromium here: apt-get install chromium, or set CHROMIUM", file=sys.stderr)
        return 2
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ktir-pages-") as folder, browser(program) as chromium:
        for page in options.pages or made_pages(Path(folder)):
            wrong = check(chromium, page, options.pictures)
            failed += bool(wrong)
            print(f"{page.name}: {'good' if not wrong else f'{len(wrong)} faults'}")
            for fault in wrong:
                print(f"  {fault}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
