"""An edits file with an original and its edit per line: every probe uses it, and invalid files are refused
completely.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import CAPTIONS, call, tiers
from vlprobe import registry
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.perturb import edits_file
from vlprobe.runs.answers import answered_probes
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

FIRST, SECOND = (captions[0] for _, _, *captions in CAPTIONS[:2])
ROWS = [  # as a person may write them
    {"original": FIRST, "edit": "On a bench sits a red dog.", "meaning": "same", "maker": "Ann"},
    {
        "original": FIRST,
        "edit": "There is a red dog on a bench.",
        "meaning": "same",
        "subtype": "P2",
    },
    {"original": FIRST, "edit": "A red dog avoids a bench.", "meaning": "different"},
    {"original": FIRST, "edit": "Kein Hund.", "meaning": "different", "subtype": "negation"},
    {"original": SECOND, "edit": "Something else.", "meaning": "different", "subtype": "negation"},
]
OPTIONS = {"rococo": {"pictures": []}}
PROBES = ("lgip", "rococo", "eqben", "visla", "prsm")


def write_edits(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run_cases(tiny: str, store: Store, probe: str, edits: Path | str, **options) -> list[dict]:
    manifest = ran(tiny, store, probe, edits, **options)
    return store.cases(manifest["case_key"]).table("cases").to_pylist()


def ran(tiny: str, store: Store, probe: str, edits: Path | str, **options) -> dict:
    chosen = OPTIONS.get(probe, {}) | options | {"edits": str(edits)}
    return execute(Request(("control:random",), tiny, probe, chosen, examine=False), store)[0]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_edits(tmp_path / "edits.jsonl", ROWS)


def test_lgip_uses_edits_of_the_same_meaning_as_paraphrases_and_others_as_flips(tiny, store, rows):
    cases = run_cases(tiny, store, "lgip", rows)
    kinds = {"same": "paraphrase", "different": "flip"}
    assert [(case["kind"], *case["texts"]) for case in cases] == [
        (kinds[row["meaning"]], row["original"], row["edit"]) for row in ROWS
    ]
    assert [case["subtype"] for case in cases] == ["advanced", "P2", "", "negation", "negation"]
    assert cases[0]["rule"] == "Ann"
    assert {case["kind"] for case in run_cases(tiny, store, "lgip", rows, kinds=["flip"])} == {
        "flip"
    }


def test_rococo_adds_wrong_edits_to_a_gallery_for_each_subtype(tiny, store, rows):
    cases = run_cases(tiny, store, "rococo", rows)
    hidden = [
        (
            case["subtype"],
            [t for t, r in zip(case["texts"], case["roles"], strict=True) if r == "different"],
        )
        for case in cases
    ]
    assert hidden == [
        ("edits", ["A red dog avoids a bench."]),
        ("edits:negation", ["Kein Hund."]),
        ("edits:negation", ["Something else."]),
    ]
    assert cases[0]["texts"][:2] == list(CAPTIONS[0][2:])


def test_eqben_uses_wrong_edits_as_foils_and_visla_makes_triplets(tiny, store, rows):
    foils = run_cases(tiny, store, "eqben", rows)
    assert [case["texts"] for case in foils] == [
        [row["original"], row["edit"]] for row in ROWS if row["meaning"] == "different"
    ]
    triplets = run_cases(tiny, store, "visla", rows)
    same, different = (
        [r["edit"] for r in ROWS[:4] if r["meaning"] == m] for m in ("same", "different")
    )
    expected = {frozenset([FIRST, same[n], different[n]]) for n in range(2)}
    assert {frozenset(case["texts"]) for case in triplets} == expected
    assert [case["texts"][2] for case in triplets if case["kind"] == "t2t"] == different
    assert [case["kind"] for case in triplets] == ["t2t", "i2t"] * 2
    assert len({case["id"] for case in triplets}) == 4


def test_prsm_uses_the_edits_as_versions_of_each_query(tiny, store, rows):
    cases = run_cases(tiny, store, "prsm", rows)
    assert [(case["subtype"], case["texts"]) for case in cases] == [
        ("P1", [FIRST, ROWS[0]["edit"]]),
        ("P2", [FIRST, ROWS[1]["edit"]]),
    ]


@pytest.mark.parametrize("probe", tiers(PROBES, ("lgip", "rococo")))
def test_the_content_of_the_edits_file_is_part_of_the_key(tiny, store, rows, probe):
    before = ran(tiny, store, probe, rows)
    assert before["n_cases"] and before["run"]["options"]["edits_digest"]
    assert ran(tiny, store, probe, rows)["key"] == before["key"]
    write_edits(rows, [*ROWS, {"caption": SECOND, "text": "Noch etwas.", "meaning": "same"}])
    assert ran(tiny, store, probe, rows)["key"] != before["key"]
    loaded = registry.load_probe(probe)
    pinned = loaded.pin(loaded.defaults, store.root)
    assert "edits_digest" not in pinned and (probe == "lgip" or "edits" not in pinned)


def test_an_edits_file_works_for_captions_in_any_language(tmp_path, store):
    from tests.runs.test_run import pictured

    caption = "Ein Bus hält vor einem alten Gebäude."
    name = pictured(tmp_path, {"a.png": caption})
    rows = [
        {"caption": caption, "text": "Vor einem alten Haus hält ein Bus.", "meaning": "same"},
        {
            "caption": caption,
            "text": "Ein Zug hält vor einem alten Gebäude.",
            "meaning": "different",
        },
    ]
    edits = write_edits(tmp_path / "edits.jsonl", rows)
    for probe in PROBES:
        manifest = ran(name, store, probe, edits)
        assert manifest["n_cases"] and "not_english" not in manifest["run"]["options"], probe


def test_an_edits_file_written_by_perturb_gives_lgip_the_same_cases(tiny, tmp_path, store):
    out = tmp_path / "edits.jsonl"
    call(store.root, "perturb", tiny, "--format", "edits", "--output", str(out))
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {"item", "caption", "text", "meaning", "subtype", "maker", "made"} <= set(lines[0])
    request = Request(("control:random",), tiny, "lgip", {}, examine=False)
    by_rules = store.cases(execute(request, store)[0]["case_key"]).table("cases").to_pylist()
    by_file = run_cases(tiny, store, "lgip", out)
    columns = ("id", "kind", "subtype", "rule", "source", "target", "texts", "roles")
    for one, other in zip(by_rules, by_file, strict=True):
        assert {n: one[n] for n in columns} == {n: other[n] for n in columns}
    for probe in ("rococo", "eqben", "visla", "prsm"):
        assert run_cases(tiny, store, probe, out), probe


def test_an_edit_with_an_item_id_is_used_only_for_that_item(tiny, store, tmp_path):
    whole = run_cases(tiny, store, "lgip", write_edits(tmp_path / "a", ROWS[:1]))
    named = [ROWS[0] | {"item": whole[0]["item"]}]
    assert (
        run_cases(tiny, store, "lgip", write_edits(tmp_path / "b", named))[0]["item"]
        == whole[0]["item"]
    )
    other = [ROWS[0] | {"item": "elsewhere"}]
    with pytest.raises(InvalidInput, match="line 1, column 'item': item 'elsewhere' does not have"):
        run_cases(tiny, store, "lgip", write_edits(tmp_path / "c", other))


GOOD = json.dumps({"caption": FIRST, "text": "b", "meaning": "same"}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (GOOD + b"\n" + GOOD, "line 2, column 'text': the same edit as in line 1"),
        (GOOD + b"\n\n[1]", "line 3: not a JSON object"),
        (GOOD + b"\n" + "é".encode("latin-1"), "line 2, byte 1: not UTF-8"),
        ('{"caption": "a"}'.encode("utf-16"), "line 1, byte 1: not UTF-8"),
        (
            b'{"caption": "a", "meaning": "same"}',
            "line 1, column 'text': missing (accepted names: 'edit')",
        ),
        (b'{"caption": " ", "text": "b", "meaning": "same"}', "column 'caption': empty"),
        (b'{"caption": "a", "text": 3, "meaning": "same"}', "column 'text': empty or not a string"),
        (
            b'{"caption": "a", "text": "a", "meaning": "same"}',
            "the edit is identical to the original caption",
        ),
        (b'{"caption": "a", "text": "b"}', "column 'meaning': '' is not 'same' or 'different'"),
        (b'{"caption": "a", "text": "b", "meaning": "other"}', "column 'meaning': 'other'"),
        (
            b'{"caption": "a", "text": "b", "meaning": "same", "maker": 3}',
            "column 'maker': not a valid string",
        ),
        (
            b'{"caption": "a", "text": "\\ud800", "meaning": "same"}',
            "incomplete character (a lone surrogate)",
        ),
        (
            b'{"caption": "a", "text": "b", "meaning": "same"}',
            "column 'caption': caption 'a' is not in the dataset",
        ),
        (b"[" * 100_000, "line 1: not a JSON object"),
    ],
)
@pytest.mark.parametrize("probe", ["lgip", "visla"])
def test_an_invalid_edits_file_is_refused_in_one_line_and_nothing_is_stored(
    tiny, store, tmp_path, content, message, probe
):
    path = tmp_path / "edits.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        ran(tiny, store, probe, path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not list(store.root.glob("cases/*")) and not list(store.root.glob("runs/*"))


def test_a_file_in_lgips_form_is_refused_by_other_probes_in_one_line(tiny, store, tmp_path):
    out = tmp_path / "lgip.jsonl"
    call(store.root, "perturb", tiny, "--output", str(out))
    with pytest.raises(InvalidInput, match="in LGIP format, which only the lgip probe can read"):
        ran(tiny, store, "visla", out)
    assert ran(tiny, store, "lgip", out)["n_cases"]


def test_a_byte_order_mark_and_the_kinds_of_older_files_are_read():
    older = {"caption": "a", "text": "b", "kind": "flip", "subtype": "color"}
    (row,) = edits_file.read(b"\xef\xbb\xbf" + json.dumps(older).encode(), "f").rows
    assert (row.meaning, row.subtype, row.row) == ("different", "color", 1)


DOCS = (Path(__file__).resolve().parents[2] / "docs" / "edits.md").read_text("utf-8")


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_accepts_the_edits_shown_in_the_docs(tmp_path, store, probe):
    from tests.runs.test_run import pictured

    block = re.search(r"<!-- edits of [^>]*-->\n```json\n(.*?)```", DOCS, re.DOTALL)
    assert block
    edits = tmp_path / "edits.jsonl"
    edits.write_text(block[1], "utf-8")
    captions = {json.loads(line)["caption"] for line in block[1].splitlines()}
    name = pictured(tmp_path, {f"{n}.png": caption for n, caption in enumerate(captions)})
    assert ran(name, store, probe, edits)["n_cases"]


def test_the_commands_shown_in_the_docs_exist_with_their_options():
    blocks = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
    lines = [line.partition(" > ")[0] for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines]
    assert {words[1] for words in commands} >= {"run", "perturb", "edits", "sheet", "verdicts"}
    for _, command, *words in commands:
        main.commands[command].make_context(command, words)


def test_a_score_file_for_questions_from_an_edits_file_is_matched_to_its_probe(
    tiny, store, rows, tmp_path
):
    """Earlier, the Run page reported that the edits file was changed during the run, and did not start it."""
    cases = run_cases(tiny, store, "lgip", rows)
    lines = "".join(f"{case['id']},0.5,0.25\n" for case in cases)
    (tmp_path / "s.csv").write_text(f"id,c0_i0,c1_i0\n{lines}")
    options = {"lgip": registry.load_probe("lgip").defaults | {"edits": str(rows)}}
    model = registry.load_model(f"scores:{tmp_path / 's.csv'}")
    items = registry.load_dataset(tiny, store.root).items
    assert answered_probes(model, items, options, 42, store.root) == ["lgip"]
