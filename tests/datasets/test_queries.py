import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe.datasets import queries
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb.tokens import takes_an

TRAITS = [trait for kind in ("trait", "race") for trait in queries.SYNONYMS[kind]]
GENDERS = list(queries.SYNONYMS["gender"])


def write(tmp_path: Path, rows: list[object] | str, name: str = "prompts.jsonl") -> str:
    file = tmp_path / name
    file.write_text(rows if isinstance(rows, str) else "\n".join(map(json.dumps, rows)))
    return f"queries:{file}"


def prompts(*texts: str) -> list[dict]:
    return [{"caption": text, "filename": "x"} for text in texts]


def test_each_distinct_prompt_has_four_versions_with_prefixes(tmp_path: Path):
    rows = prompts(
        "an old male cook", "A photo of an old male cook", "An image of an old male cook"
    )
    loaded = queries.load(write(tmp_path, rows) + "+p2", tmp_path)
    (item,) = loaded.items
    assert item.captions == (
        "an old male cook",
        "A photo of an old male cook",
        "A picture of an old male cook",
        "An image of an old male cook",
    )
    assert item.image is None
    assert (item.setting, item.tags) == (
        "P2",
        {"versions": "np,p3,p2,p1", "trait": "old", "gender": "male"},
    )
    assert loaded.notes == ("3 prompts in the file make 1 distinct queries.",)


def test_only_a_prefix_at_the_beginning_is_replaced(tmp_path: Path):
    rows = prompts("a young male cook with a photo of a dog")
    loaded = queries.load(write(tmp_path, rows) + "+p2", tmp_path)
    assert loaded.items[0].captions[1] == "A photo of a young male cook with a photo of a dog"


def test_synonyms_replace_the_first_the_second_and_both_attributes(tmp_path: Path):
    loaded = queries.load(
        write(tmp_path, prompts("A photo of a young female academic")) + "+p3", tmp_path
    )
    (item,) = loaded.items
    assert item.captions == (
        "A photo of a young female academic",
        "A photo of a youthful female academic",
        "A photo of a young woman academic",
        "A photo of a youthful woman academic",
    )
    assert (item.setting, item.tags) == (
        "P3",
        {"versions": "o,a1,a2,a12", "trait": "young", "gender": "female"},
    )


@given(
    st.sampled_from(TRAITS),
    st.sampled_from(GENDERS),
    st.sampled_from(["", "A photo of "]),
    st.booleans(),
)
def test_a_synonym_changes_only_the_attribute_and_its_article(
    trait: str, gender: str, lead: str, capital: bool
):
    article = ("A" if capital and not lead else "a") + ("n" if takes_an(trait) else "")
    item = queries._with_synonyms(
        queries.PROMPT.fullmatch(f"{lead}{article} {trait} {gender} baker")
    )
    assert len(set(item.captions)) == 4
    for caption in item.captions:
        assert caption.startswith(lead) and caption.endswith(" baker")
        first, second = caption.removeprefix(lead).split()[:2]
        assert first == article[0] + ("n" if takes_an(second) else "")
    attributes = [caption.removeprefix(lead).split(" ", 1)[1] for caption in item.captions]
    one, two = queries.SYNONYMS[queries.KINDS[trait]][trait], queries.SYNONYMS["gender"][gender]
    assert attributes[1:] == [f"{one} {gender} baker", f"{trait} {two} baker", f"{one} {two} baker"]


def test_synonyms_are_unique_and_are_not_attributes_of_the_dataset():
    synonyms = [synonym for pairs in queries.SYNONYMS.values() for synonym in pairs.values()]
    assert not set(synonyms) & set(queries.KINDS)
    assert max(Counter(synonyms).values()) == 1


def test_prompts_without_known_attributes_are_counted(tmp_path: Path):
    name = write(tmp_path, prompts("a young female cook", "a tall cook"))
    kept = queries.load(name + "+p2", tmp_path)
    assert [len(item.captions) for item in kept.items] == [4, 4]
    assert "gender" not in kept.items[1].tags
    assert (
        kept.notes[1] == "1 of 2 queries do not contain two known attributes (first: a tall cook)."
    )
    left = queries.load(name + "+p3", tmp_path)
    assert len(left.items) == 1
    assert left.notes[1].endswith("and are left out (first: a tall cook).")


@pytest.mark.parametrize("name", ["own.csv", "own.tsv", "own.jsonl"])
def test_paraphrases_are_read_from_a_table(tmp_path: Path, name: str):
    rows = [
        ("q1", "a dog runs", "female"),
        ("q2", "a cat", "male"),
        ("q1", "a running dog", "female"),
        ("q2", "cat", "male"),
    ]
    if name.endswith("jsonl"):
        text = "\n".join(
            json.dumps(dict(zip(("query", "caption", "gender"), row, strict=True))) for row in rows
        )
    else:
        mark = "," if name.endswith("csv") else "\t"
        text = "\n".join(mark.join(row) for row in [("Query", "caption", "gender"), *rows])
    loaded = queries.load(write(tmp_path, text, name), tmp_path)
    assert [(item.id, item.captions) for item in loaded.items] == [
        ("q1", ("a dog runs", "a running dog")),
        ("q2", ("a cat", "cat")),
    ]
    assert (loaded.items[0].setting, loaded.items[0].tags) == (
        "P1",
        {"versions": "o,c1", "gender": "female"},
    )


def test_versions_are_named_by_the_version_column(tmp_path: Path):
    text = "query,version,caption\n1,original,a dog\n1,llama,one dog\n"
    assert (
        queries.load(write(tmp_path, text, "own.csv"), tmp_path).items[0].tags["versions"]
        == "original,llama"
    )


def test_a_query_with_a_single_version_is_skipped_and_counted(tmp_path: Path):
    text = "query,caption\n1,a dog\n1,one dog\n2,a cat\n"
    loaded = queries.load(write(tmp_path, text, "own.csv"), tmp_path)
    assert [item.id for item in loaded.items] == ["1"]
    assert loaded.notes == ("1 of 2 queries have one version only and are left out (first: 2).",)


@pytest.mark.parametrize(
    "text, name, message",
    [
        ("query,text\n1,a dog\n", "own.csv", r"1 of 1 rows .*first: 2\)"),
        ("query,caption\n1,a\n1,\n,b\n", "own.csv", r"2 of 3 rows .*first: 3\)"),
        (
            "query,caption,gender\n1,a,male\n1,b,female\n",
            "own.csv",
            r"differ in gender \(female, male\)",
        ),
        (
            "query,caption\n1,a\n",
            "own.csv",
            r"No items are left in .*1 of 1 queries have one version",
        ),
        ('{"caption": "a White male cook"}', "own.jsonl", r"add \+p2 or \+p3"),
        ("[1]\n7\n", "own.jsonl", "2 of 2 rows"),
        (
            '{"query": "q", "caption": null}\n{"query": "q", "caption": "a"}',
            "own.jsonl",
            "1 of 2 rows",
        ),
        (
            '{"caption": "a"}\n{"text": "b"}\n{"caption": 3}',
            "own.jsonl+p2",
            r"2 of 3 rows .*first: row 2\)",
        ),
        ('{"caption": "a cook"}', "own.jsonl+p3", r"No items are left in .*\(first: a cook\)"),
        ("query,caption\n", "own.csv+p2", r"not a \.jsonl"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(
    tmp_path: Path, text: str, name: str, message: str
):
    file, plus, option = name.partition("+")
    with pytest.raises(InvalidInput, match=message) as caught:
        queries.load(write(tmp_path, text, file) + plus + option, tmp_path)
    assert "\n" not in str(caught.value)


def test_settings_cannot_be_combined_and_an_unknown_one_is_refused(tmp_path: Path):
    name = write(tmp_path, prompts("a young male cook"))
    with pytest.raises(InvalidInput, match=r"one of \+p2 and \+p3"):
        queries.load(name + "+p2+p3", tmp_path)
    with pytest.raises(NotFound, match="Known: p2, p3"):
        queries.load(name + "+p4", tmp_path)


@pytest.fixture
def released(shared_data: Path) -> Path:
    return shared_data / "socialcounterfactuals" / "race_gender_occupation.jsonl"


def test_the_versions_with_prefixes_are_the_released_prompts(released: Path, tmp_path: Path):
    lines = [json.loads(line) for line in released.read_text().splitlines()]
    written = {text for line in lines for key, text in line.items() if key != "filename"}
    loaded = queries.load(f"queries:{released}+p2", tmp_path)
    assert {caption for item in loaded.items for caption in item.captions} == written
    assert len(loaded.items) * 4 == len(written) == 11_712


def test_the_released_prompts_give_groups_of_equal_size(released: Path, tmp_path: Path):
    items = queries.load(f"queries:{released}+p3", tmp_path).items
    assert Counter(item.tags["gender"] for item in items) == {"male": 5856, "female": 5856}
    assert set(Counter(item.tags["race"] for item in items).values()) == {1952}
    assert {len(set(item.captions)) for item in items} == {4}
    for item in items[::500]:
        assert all(one != two for one, two in combinations(item.captions, 2))
