"""The HTML page, driven in a real browser: what it paints, says and loads."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize, SymLogNorm

from posviz import outputs
from posviz.draw.look import Look
from posviz.stack import HeadStack

SIZE = 24
TOKENS = (
    "</script><script>document.title='broken'</script>",
    '"',
    "<b>",
    " the",
    "\n",
    "é",
    "語",
    "&amp;",
    *"abcdefghijklmnop",
)
RECIPE = {"command_line": "posviz render --title '</code>' & more", "seed": 1}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        missing = "these tests need playwright and an installed chromium"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def stack() -> HeadStack:
    values = np.random.default_rng(0).normal(size=(5, SIZE, SIZE)).astype(np.float32) * np.float32(3)
    values[1] = np.abs(values[1]) * np.float32(1e-3)
    values[1, 3, 1] = 0
    values[2] = np.nan
    values[3] = -2.5
    values[4, 5, 2] = np.inf
    values[:, ~np.tri(SIZE, dtype=bool)] = np.nan
    meta = {"method": "kerple", "title": "KERPLE", "layer": 3, "n_layers": 4, "quantity": "bias", "source": "a<b>.pt"}
    return HeadStack(values, (1, 2, 3, 4, 9), np.arange(SIZE), TOKENS, {**meta, "seq_len": SIZE})


class Opened:
    """A page in the browser, with all that it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1200) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda told: self.complaints.append(told.text) if told.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", state="attached")

    def pixels(self, head: int, within: str = ".head") -> np.ndarray:
        """The heatmap of the nth head as the browser holds it, uint8 [row, column, 3]."""
        canvas = self.page.locator(f"{within} .map canvas").nth(head)
        url = canvas.evaluate(
            "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return [c.height, c.width, btoa(Array.from(d, (x) => String.fromCharCode(x)).join(''))]; }"
        )
        return np.frombuffer(base64.b64decode(url[2]), np.uint8).reshape(url[0], url[1], 4)[..., :3]

    def point_at(self, head: int, row: int, column: int, cells: int = SIZE) -> str:
        canvas = self.page.locator(".head .map canvas").nth(head)
        side = canvas.evaluate("c => c.clientWidth") / cells
        canvas.hover(position={"x": 1 + (column + 0.5) * side, "y": 1 + (row + 0.5) * side})
        return self.page.inner_text("#readout")


@pytest.fixture
def opened(browser: Any, stack: HeadStack, tmp_path: Path) -> Iterator[Opened]:
    found = Opened(browser, outputs.save(stack, Look(), tmp_path / "page.html", RECIPE))
    yield found
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
    found.page.close()


def wanted(values: np.ndarray, norm: Normalize, cmap: str = "viridis") -> np.ndarray:
    colours = colormaps[cmap](norm(np.nan_to_num(values, posinf=np.inf)), bytes=True)[..., :3].copy()
    colours[np.isnan(values)] = 255
    return colours


def finite_range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return float(finite.min()), float(finite.max())


def test_every_cell_has_the_colour_of_its_value(opened: Opened, stack: HeadStack) -> None:
    for head in (0, 1, 4):
        norm = Normalize(*finite_range(stack.values[head]))
        np.testing.assert_array_equal(opened.pixels(head), wanted(stack.values[head], norm))
    assert (opened.pixels(2) == 255).all()  # a head without values is blank
    np.testing.assert_array_equal(opened.pixels(3), wanted(stack.values[3], Normalize(-2.75, -2.25)))


def test_scale_and_colour_map_can_be_switched(opened: Opened, stack: HeadStack) -> None:
    low, high = finite_range(stack.values)
    opened.page.check("input[value=shared]")
    np.testing.assert_array_equal(opened.pixels(1), wanted(stack.values[1], Normalize(low, high)))
    opened.page.select_option("#map", label="RdBu_r, zero in the middle")
    reach = max(-low, high)
    np.testing.assert_array_equal(opened.pixels(0), wanted(stack.values[0], Normalize(-reach, reach), "RdBu_r"))
    opened.page.check("input[value=head]")
    opened.page.select_option("#map", label="viridis")
    np.testing.assert_array_equal(opened.pixels(0), wanted(stack.values[0], Normalize(*finite_range(stack.values[0]))))


def test_logarithmic_colours_are_those_of_the_figure(opened: Opened, stack: HeadStack) -> None:
    """To within one of 256 colours: a browser's logarithm is not numpy's."""
    opened.page.check("#log")
    low, high = finite_range(stack.values[0])
    signed = SymLogNorm(0.01 * max(-low, high), vmin=low, vmax=high, base=10)
    weights = stack.values[1]
    positive = LogNorm(weights[weights > 0].min(), np.nanmax(weights), clip=True)
    table = colormaps["viridis"](np.arange(256), bytes=True)[:, :3].astype(int)
    for head, norm in ((0, signed), (1, positive)):
        seen = np.isfinite(stack.values[head])
        at = np.clip((norm(stack.values[head][seen]) * 256).astype(int), 0, 255)
        shown = opened.pixels(head)[seen].astype(int)
        near = [np.abs(shown - table[np.clip(at + by, 0, 255)]).sum(axis=1) == 0 for by in (-1, 0, 1)]
        assert np.any(near, axis=0).all()
        assert near[1].mean() > 0.98


def test_the_pointer_reads_the_true_value(opened: Opened, stack: HeadStack) -> None:
    text = opened.point_at(0, 20, 3)
    assert text.startswith('Head 1, query 20 "m", key 3 " the", distance 17: ')
    shown = float(text.rpartition(": ")[2].replace("\N{MINUS SIGN}", "-"))
    assert np.float32(shown) == stack.values[0, 20, 3]
    assert "masked" in opened.point_at(0, 3, 20)
    assert opened.point_at(4, 8, 0).startswith("Head 9, ")
    assert "</script>" in opened.point_at(1, 8, 0)  # a token is text, whatever it holds
    assert opened.page.title() == "KERPLE, layer 3"


def test_a_head_is_enlarged_and_read_by_keyboard_alone(opened: Opened, stack: HeadStack) -> None:
    from playwright.sync_api import expect

    page = opened.page
    page.locator(".head").nth(0).focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#large-title") == "Head 1"
    np.testing.assert_array_equal(opened.pixels(0, ".large"), opened.pixels(0))
    for key in ("Shift+ArrowDown", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    text = page.inner_text("#large-readout")
    assert "query 10 " in text
    assert "key 1 " in text
    assert np.float32(text.rpartition(": ")[2].replace("\N{MINUS SIGN}", "-")) == stack.values[0, 10, 1]
    page.keyboard.press("PageDown")
    assert page.inner_text("#large-readout").startswith("Head 2, query 10 ")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    assert page.inner_text("#large-title") == "Head 9"
    page.keyboard.press("Escape")
    assert not page.locator("#large").is_visible()
    # The dialog's close event, which moves the focus, comes a moment after the key.
    expect(page.locator(".head").last).to_be_focused()  # head 9 is the last of three


def test_a_click_opens_the_head_at_that_cell(opened: Opened) -> None:
    canvas = opened.page.locator(".head .map canvas").nth(1)
    canvas.click(position={"x": 2, "y": 2})
    assert opened.page.inner_text("#large-title") == "Head 2"
    opened.page.click("#next")
    assert opened.page.inner_text("#large-title") == "Head 3"
    opened.page.click("#close")
    assert not opened.page.locator("#large").is_visible()


def test_the_page_says_what_it_shows(opened: Opened) -> None:
    facts = opened.page.inner_text(".facts")
    for fact in ("a<b>.pt", "kerple", "3 of 4", "bias", str(SIZE)):
        assert fact in facts
    opened.page.click("summary")
    assert opened.page.inner_text("#command") == RECIPE["command_line"]


def test_a_narrow_screen_is_enough(browser: Any, stack: HeadStack, tmp_path: Path) -> None:
    look = Look(title="A title that is longer than the screen is wide, by some words")
    opened = Opened(browser, outputs.save(stack, look, tmp_path / "page.html", RECIPE), width=340)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 340
    assert opened.page.inner_text("h1") == look.title
    opened.page.locator(".head").nth(0).click()
    box = opened.page.locator("#large").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 340
    assert opened.page.evaluate("(d => d.scrollWidth <= d.clientWidth)(document.getElementById('large'))")
    opened.page.close()


def test_the_look_is_what_the_page_begins_with(browser: Any, stack: HeadStack, tmp_path: Path) -> None:
    look = Look(cmap="magma", scale="shared")
    opened = Opened(browser, outputs.save(stack, look, tmp_path / "page.html", {}))
    np.testing.assert_array_equal(
        opened.pixels(0), wanted(stack.values[0], Normalize(*finite_range(stack.values)), "magma")
    )
    assert not opened.page.locator("#made").is_visible()  # no command, nothing to show
    opened.page.close()


def test_a_reduced_stack_reads_in_positions(browser: Any, tmp_path: Path) -> None:
    values = np.arange(2 * 8 * 4, dtype=np.float32).reshape(2, 8, 4)
    meta = {"seq_len": 125, "key_len": 64, "reduce": "absmax"}
    reduced = HeadStack(values, (1, 2), meta=meta, cell=16, ranges=np.array([[0, 99], [0, 99]], dtype=np.float32))
    opened = Opened(browser, outputs.save(reduced, Look(), tmp_path / "page.html", {}))
    np.testing.assert_array_equal(opened.pixels(1), wanted(values[1], Normalize(0, 99)))
    opened.page.locator(".head").nth(1).focus()
    for key in ("Enter", "Shift+ArrowDown", "ArrowRight"):
        opened.page.keyboard.press(key)
    said = opened.page.inner_text("#large-readout")
    assert said == "Head 2, query 112\N{EN DASH}124, key 16\N{EN DASH}31, distance about 96: absmax 61"
    assert "16 x 16 positions" in opened.page.inner_text("#note")
    opened.page.close()
