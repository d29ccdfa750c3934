"""Replacement words drawn with several seeds and from a custom vocabulary file."""

import pytest

from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute

PROBE = registry.load_probe("rococo")


def run(dataset, store, seed=42, **options):
    settings = Request(
        ("control:random",), dataset, "rococo", {"pictures": []} | options, seed, examine=False
    )
    manifest = execute(settings, store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pandas()
    return manifest, cases, views.runs.question_set(store, manifest["case_key"])


def test_a_run_with_several_caption_seeds_averages_the_runs_of_each_seed(tiny, store):
    policies = ["rand-voca", "same-concept"]
    _, cases, together = run(tiny, store, policies=policies, caption_seeds=[1, 10])
    assert set(cases["rule"]) == {f"{name}:seed{seed}" for name in policies for seed in (1, 10)}
    assert set(cases["subtype"]) == set(policies)
    assert cases["id"].is_unique
    alone = []
    for seed in (1, 10):
        _, of_seed, question_set = run(tiny, store, seed, policies=policies)
        alone.append(views.estimates.estimates(question_set, "subtype"))
        for name in policies:
            here = cases.loc[cases["rule"] == f"{name}:seed{seed}", "texts"].map(tuple)
            assert set(here) == set(of_seed.loc[of_seed["subtype"] == name, "texts"].map(tuple))
    pooled = views.estimates.estimates(together, "subtype").set_index(["slice", "metric"])
    for metric in ("i2t_r1", "i2t_r1_new", "i2t_rsms", "i2t_drop_rate"):
        for name in policies:
            of_seeds = [
                table.set_index(["slice", "metric"]).loc[(name, metric), "value"] for table in alone
            ]
            assert pooled.loc[(name, metric), "value"] == pytest.approx(sum(of_seeds) / 2)


def test_a_run_without_caption_seeds_or_a_vocabulary_keeps_its_key(tmp_path):
    pinned = PROBE.pin(PROBE.defaults, tmp_path)
    assert set(pinned) == {"policies", "pictures", "picture_seeds", "influence", "normalise"}


def test_words_come_from_the_vocabulary_and_its_content_is_part_of_the_key(tiny, store, tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("zebra\ntoaster\n##ing\n[PAD]\n", encoding="utf-8")
    settings = {"policies": ["rand-voca"], "vocabulary": str(file)}
    manifest, cases, _ = run(tiny, store, **settings)
    altered = [
        text
        for texts, roles in zip(cases["texts"], cases["roles"], strict=True)
        for text, role in zip(texts, roles, strict=True)
        if role == "different"
    ]
    originals = {text for texts in cases["texts"] for text in texts} - set(altered)
    assert altered
    for text in altered:
        assert {"zebra", "zebras", "toaster", "toasters"} & set(text.lower().strip(".").split())
        assert text not in originals
    assert manifest["run"]["options"]["vocabulary"] == str(file)
    file.write_text("zebra\nkettle\n", encoding="utf-8")
    assert run(tiny, store, **settings)[0]["key"] != manifest["key"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"zebra\n", {}, "has only one noun, 'zebra'. Expected at least two"),
        (b"running\n##s\n", {}, "no noun"),
        (b"\xff\xfe\n", {}, "is not UTF-8 (byte 0)"),
        (None, {}, "cannot be read (No such file or directory)"),
        (b"zebra\nkettle\n", {"policies": ["danger"]}, "no policy uses it. Add rand-voca"),
    ],
)
def test_an_invalid_or_unused_vocabulary_is_refused_in_one_line(
    content, options, message, tiny, store, tmp_path
):
    file = tmp_path / "words.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        run(tiny, store, **{"policies": ["rand-voca:2"], "vocabulary": str(file)} | options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not store.runs()
