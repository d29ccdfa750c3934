"""The models that the model checks list."""

import json
import re
from pathlib import Path

from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.render import fitness
from vlprobe.render.html.style import STYLE
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.runs.verify import remove
from vlprobe.storage.store import Store

JUDGED, UNJUDGED = "control:random", "control:constant"


def test_a_model_without_results_is_listed_only_if_a_check_applied_to_it(tmp_path: Path):
    store = Store(tmp_path / "cache")
    manifests = execute(Request((JUDGED, UNJUDGED), make_tiny(tmp_path / "tiny"), "lgip"), store)
    for file in (store.root / "models").glob("*.json"):
        examination = json.loads(file.read_text("utf-8"))
        if examination["model"] == UNJUDGED:  # as for scores from a file, to which no check applies
            for check in examination["checks"]:
                check["passed"] = None
            file.write_text(json.dumps(examination), "utf-8")
    rows = views.fitness.matrix(store)
    assert {row.model for row in rows} == {JUDGED, UNJUDGED}
    # On a narrow page, headings of checks are so wide that they leave no gap above the other columns
    n_checks = len({name for row in rows for name in row.checks})
    assert fitness.matrix(rows, {}, str).count('<th scope="col" class="vp-check">') == n_checks
    assert re.search(r"max-width: 640px\) { .vp-table th.vp-check { min-width", STYLE)
    remove(store, manifests)
    assert {row.model for row in views.fitness.matrix(store)} == {JUDGED}
    assert {found.model for found in views.fitness.examinations(store)} == {JUDGED}
