"""The page of a simulation: one document that loads nothing and shows anything harmlessly."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from ui.chromium import PROGRAM, chromium

from steersman.simulation import PageContents, Story, story_page
from steersman.simulation.stories.actions import CONTROL_PLANE, Action
from steersman.simulation.stories.comparison import StoryLine

HOSTILE = '<img src="x" onerror="alert(1)">'


def action(words: str, **more) -> Action:
    return Action(**{"time": 1.5, "actor": "operator", "sort": "write", "words": words} | more)


STORY = Story(
    title="crash after the reply to create Secret shop/home",
    violations=("Secret shop/home is left behind",),
    lines=(
        StoryLine(action=action("creates Site shop/home", actor="user", target=CONTROL_PLANE)),
        StoryLine(omitted=4),
        StoryLine(
            action=action("creates Secret shop/home", target=CONTROL_PLANE, diff=("+ data:", "+   key: (hidden)"))
        ),
        StoryLine(mark="!", action=action("crash after the reply", sort="fault")),
        StoryLine(mark="+", parts=True, action=action("calls bank: open x", target="bank", outcome="lost")),
        StoryLine(mark="-", action=action("creates Service shop/home", target=CONTROL_PLANE)),
    ),
)
CONTENTS = PageContents(
    scenario="shop.operator",
    summary="412 schedules",
    stories=(STORY,),
    coverage={"create secrets": {"lost reply": 3, "crash after reply": 1}, "update sites/status": {"lost reply": 2}},
    broken=frozenset({("create secrets", "crash after reply")}),
)


class Tags(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_loads_nothing() -> None:
    page = story_page(CONTENTS)
    found = Tags(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not {"src", "href", "style"} & set(found.attributes)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src &#x27;none&#x27;; style-src &#x27;sha256-" in page


def test_everything_is_escaped() -> None:
    """Names, errors and differences come from the program under test."""
    line = StoryLine(action=action(HOSTILE, actor=HOSTILE, target=HOSTILE, outcome=HOSTILE, diff=(f"+ {HOSTILE}",)))
    page = story_page(
        PageContents(
            scenario=HOSTILE,
            summary=HOSTILE,
            remarks=[HOSTILE],
            stories=[Story(title=HOSTILE, violations=(HOSTILE,), lines=(line,))],
            coverage={HOSTILE: {HOSTILE: 1}},
            uncompared=[HOSTILE],
        )
    )
    found = Tags(page)
    assert "img" not in found.tags
    assert sum(HOSTILE in text for text in found.texts) >= 10


def test_each_actor_has_a_column_and_the_control_plane_is_between_operators_and_others() -> None:
    lanes = re.search(r'lanes-4 lanes">(.*?)</div>', story_page(CONTENTS))
    assert lanes is not None
    assert re.findall(r"<span>([^<]+)</span>", lanes[1]) == ["user", "operator", CONTROL_PLANE, "bank"]


def test_a_message_is_an_arrow_from_its_actor_to_its_target() -> None:
    page = story_page(CONTENTS)
    assert 'class="act arrow right lane-1-3"' in page
    assert 'class="act arrow right lane-2-4"' in page
    assert 'class="act alone lane-1-4"' in page  # a fault is above all lanes


def test_differences_are_folded_and_the_parting_and_the_fault_are_marked() -> None:
    page = story_page(CONTENTS)
    assert page.count("<details>") == 1
    assert "the runs part here" in page
    assert 'class="row lanes-4 fault"' in page
    assert "\u2026 4 actions as without the fault" in page


def test_the_coverage_has_a_cell_for_each_fault_and_request_and_marks_what_broke() -> None:
    page = story_page(CONTENTS)
    assert page.count('class="number broken"') == 1
    assert page.count('class="number zero"') == 1
    assert page.count('<td class="number">') == 2


def test_a_page_without_findings_says_so() -> None:
    page = story_page(PageContents(scenario="shop.operator", summary="412 schedules"))
    assert '<span class="good">no violation</span>; 412 schedules' in page


@pytest.mark.alone("starts a browser")
@pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium")
async def test_the_page_fits_the_window_in_light_and_dark(tmp_path) -> None:
    file = tmp_path / "page.html"
    file.write_text(story_page(CONTENTS), encoding="utf-8")
    async with chromium(tmp_path / "profile") as tab:
        for width, dark in ((1200, False), (1200, True), (390, False), (390, True)):
            await tab.show(width=width, height=800, dark=dark)
            await tab.call("Page.navigate", url=f"{file.as_uri()}?{width}{dark}")
            await tab.until(f"location.search === '?{width}{dark}' && document.querySelectorAll('.row').length === 6")
            assert await tab.run("document.documentElement.scrollWidth") <= width
            background = await tab.run("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(15, 19, 24)" if dark else "rgb(246, 247, 249)")
            assert await tab.run("document.querySelector('.lanes').offsetHeight > 0") is (width > 700)
            assert not await tab.run("document.querySelector('pre').checkVisibility()")
            await tab.run("document.querySelector('summary').click()")
            assert await tab.run("document.querySelector('pre').checkVisibility()")
        assert tab.complaints == []
