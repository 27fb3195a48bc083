"""The site in a real Chromium: sorting, filtering, rank diagrams, colour schemes, widths, no console errors."""

import json

import pytest
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")

# The smallest contrast (WCAG 2.1, 1.4.3) of any text on the page with what lies behind it.
CONTRAST = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (e) => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = [21, ""];
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || e.tagName === "SCRIPT") continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 80)];
  }
  return least;
})()
"""


@pytest.fixture(scope="module")
def running():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(running):
    """The browser, which must have no console errors at the end of a test."""
    running.complaints.clear()
    yield running
    assert running.complaints == []


def column(browser, name):
    """The texts of a column of the first table, in its visible rows."""
    return browser.value(f"""(() => {{
      const table = document.querySelector("table");
      const at = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent.trim() === "{name}");
      return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[at].textContent.trim());
    }})()""")


def head(name):
    heads = 'document.querySelector("table").tHead.rows[0].cells'
    return f'[...{heads}].find((head) => head.textContent.trim() === "{name}")'


def test_a_click_on_a_head_sorts_and_typing_in_the_filter_leaves_the_rows_with_every_word(site, browser):
    browser.open(site / "results.html")
    browser.value("document.querySelector('#all > button').click()")
    before = column(browser, "ours ± se")
    for direction, sign in (("ascending", 1), ("descending", -1)):
        browser.value(f"{head('ours ± se')}.querySelector('button').click()")
        assert browser.value(f"{head('ours ± se')}.getAttribute('aria-sort')") == direction
        after = [sign * float(text.split()[0]) for text in column(browser, "ours ± se") if text[0].isdigit()]
        assert after == sorted(after) and len(after) > 5
    assert sorted(column(browser, "ours ± se")) == sorted(before)
    browser.value(f"{head('method')}.querySelector('button').click()")
    assert browser.value("document.querySelectorAll('[aria-sort]').length") == 1
    browser.open(site / "results.html")
    total = len(column(browser, "method"))
    browser.value("document.querySelector('.filter input').focus()")
    browser("Input.insertText", text="SVI pima nll")
    assert column(browser, "method") == ["svi"] and column(browser, "data set") == ["pima"]
    assert browser.value("document.querySelector('.filter output').value") == "1 of 1 rows"
    browser.value("document.querySelector('.filter input').select()")
    browser("Input.insertText", text=" ")
    assert len(column(browser, "method")) == total


def test_one_rank_diagram_is_shown_at_a_time_and_a_link_to_a_record_opens_it(site, browser):
    browser.open(site / "ranks.html")
    shown = "[...document.querySelectorAll('details.ranks')].filter((e) => !e.hidden).map((e) => e.dataset.metric)"
    metric = "document.querySelectorAll('.choices select')[1]"
    first, *others = browser.value(f"[...{metric}.options].map((option) => option.value)")
    assert browser.value(shown) == [first] and others
    change = "dispatchEvent(new Event('change', {bubbles: true}))"
    browser.value(f"{metric}.value = {json.dumps(others[-1])}; {metric}.{change}")
    assert browser.value(shown) == others[-1:]
    page = next(iter(sorted((site / "cell").glob("*.html"))))
    browser.open(page)
    browser.value("document.querySelector('td a[href^=\"#\"]').click()")
    browser("Page.reload", until="Page.loadEventFired")
    assert browser.value("document.querySelector('pre:target').closest('details').open") is True


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_and_can_be_read(site, browser, scheme, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser("Emulation.setDeviceMetricsOverride", **size)
    browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    names = ["index.html", "results.html", "ranks.html", "paper/mine.html", "dataset/pima.html", "method/sep.html"]
    cells = sorted(path for path in (site / "cell").glob("*.html") if "is NaN" in path.read_text())
    for page in [*(site / name for name in names), site / "experiment" / "own.html", *cells]:
        browser.open(page)
        assert browser.value("document.scrollingElement.scrollWidth") <= width, page.name
        assert browser.value("document.documentElement.scrollHeight") <= 3000, page.name
        least, where = browser.value(CONTRAST)
        assert least >= 4.5, (page.name, where)
    dark = browser.value("getComputedStyle(document.body).backgroundColor") != "rgb(250, 248, 244)"
    assert dark == (scheme == "dark")


def test_the_search_finds_methods_data_sets_and_claims_from_every_page_and_escapes(site, browser):
    browser.open(site / "dataset" / "pima.html")
    browser.value("document.querySelector('.search input').focus()")
    hits = (
        "[...document.querySelectorAll('.search li')].map((li) => [li.textContent, (li.querySelector('a') || {}).href])"
    )
    for words, kind, page in (
        ("sep", "method", "method/sep.html"),
        ("wdbc", "data set", "dataset/wdbc.html"),
        ("constant lower", "claim", "claims/mine.html#better"),
        ("onerror", "data set", "dataset/"),
    ):
        browser.value("document.querySelector('.search input').select()")
        browser("Input.insertText", text=words)
        for _ in range(100):  # the index is loaded with the first letter
            if lines := browser.value(hits):
                break
        assert f" {kind}" in lines[0][0] and page in lines[0][1], (words, lines)
    assert browser.value("document.querySelectorAll('.search img').length") == 0


def test_every_page_works_without_the_script(site, browser):
    browser("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(site / "ranks.html")
        assert browser.value("document.querySelectorAll('.ranks img').length") > 0
        assert browser.value("[...document.images].every((image) => image.naturalWidth > 0)")
        assert browser.value("document.querySelectorAll('button, .filter').length") == 0
    finally:
        browser("Emulation.setScriptExecutionDisabled", value=False)
