"""The first visit: three steps in words, unfolded where nothing has been run yet."""

import pytest

from tests.dashboard.test_pages import open_page
from vlprobe.dashboard import tour
from vlprobe.storage.store import Store


@pytest.mark.parametrize("empty", [True, False])
def test_a_first_visit_has_three_steps_and_each_leads_to_its_page(
    empty: bool, store: Store, every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    at = open_page(monkeypatch, store if empty else every_probe)
    (told,) = [one for one in at.expander if "Three steps" in one.label]
    assert told.proto.expanded is empty
    assert [one.value for one in told.markdown] == [
        text for step in tour.STEPS for text in (f"**{step[0]}**", step[1])
    ]
    links = [one.proto.page for one in told.get("page_link")]
    assert links == ["run", "explore", "compare", "play"]
