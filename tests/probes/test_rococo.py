"""RoCOCO end to end, compared with a plain loop over the whole score matrix."""

import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from tests.conftest import estimates_of, image_vector, text_vector
from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import mix
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.types import Picture

OPTIONS = {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}


def run(dataset, store, **options):
    manifest = execute(Request(("control:random",), dataset, "rococo", OPTIONS | options), store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pandas()
    scores = store.run(manifest["key"]).table("scores").to_pandas()
    values = estimates_of(store, manifest, averaging="micro")["value"]
    return cases.merge(scores, on=["case", "kind", "subtype", "rule", "item"]), values


def test_image_to_text_ranks_equal_a_plain_ranking_with_altered_captions(tiny, store):
    cases, values = run(tiny, store)
    cases = cases[cases["kind"] == "i2t"]
    model = registry.load_model("control:random")
    gallery = [
        (row.item, text, role == "different")
        for row in cases.itertuples()
        for text, role in zip(row.texts, row.roles, strict=True)
    ]
    assert sum(altered for _, _, altered in gallery) == 12
    hits_clean, hits, fooled = [], [], []
    for row in cases.itertuples():
        image = image_vector(model, row.images[0])
        scored = [
            (float(image @ text_vector(model, text)), item, altered)
            for item, text, altered in gallery
        ]
        own_score = max(
            score for score, item, altered in scored if item == row.item and not altered
        )
        clean = 1 + sum(
            score >= own_score
            for score, item, altered in scored
            if item != row.item and not altered
        )
        rank = clean + sum(score >= own_score for score, _, altered in scored if altered)
        assert (row.rank_clean, row.rank) == (clean, rank)
        assert row.top_altered == max(scored)[2]
        assert row.margin == pytest.approx(
            own_score - max(score for score, _, altered in scored if altered), abs=1e-6
        )
        hits_clean.append(clean == 1)
        hits.append(rank == 1)
        fooled.append(max(scored)[2])
    assert values["i2t_r1"] == pytest.approx(np.mean(hits_clean))
    assert values["i2t_r1_new"] == pytest.approx(np.mean(hits))
    assert values["i2t_rsms"] == pytest.approx(np.mean(fooled))
    if any(hits_clean):
        assert values["i2t_drop_rate"] == pytest.approx(1 - np.mean(hits) / np.mean(hits_clean))


def test_text_to_image_galleries_contain_each_picture_mixed_with_another(tiny, store):
    cases, values = run(tiny, store)
    cases = cases[cases["kind"] == "t2i"]
    model = registry.load_model("control:random")
    tops = [json.loads(name) for name in cases["top"]]
    assert all(
        top["kind"] == "mix" and top["lam"] == 0.8 and top["path"] != top["partner"] for top in tops
    )
    for row in cases.itertuples():
        best = float(text_vector(model, row.texts[0]) @ image_vector(model, row.top))
        own_score = float(text_vector(model, row.texts[0]) @ image_vector(model, row.images[0]))
        assert row.margin == pytest.approx(own_score - best, abs=1e-6)
    assert values["t2i_r1_new"] <= values["t2i_r1"]


def test_a_patch_or_mixture_that_changes_no_pixel_is_dropped_and_counted(store, tmp_path):
    """A plain loop over complete edited pictures gives the expected cases; pictures 0 and 1 have equal pixels."""
    pixels = np.random.default_rng(1).integers(0, 255, (12, 24, 32, 3), dtype=np.uint8)
    pixels[1] = pixels[0]
    pixels[2:7, :12] = 255  # patches in this area change nothing
    pixels[7:9] = np.array([100, 102])[
        :, None, None, None
    ]  # a change of 0.1 x 2 levels is lost in rounding
    lines = ["image,caption"]
    for number, own in enumerate(pixels):
        Image.fromarray(own).save(tmp_path / f"{number}.{'bmp' if number == 1 else 'png'}")
        lines += [
            f"{number}.{'bmp' if number == 1 else 'png'},A dog beside {number} {x}."
            for x in ("cars", "cats")
        ]
    (tmp_path / "captions.csv").write_text("\n".join(lines))
    options = {
        "policies": [],
        "pictures": ["mix:0.9", "patch:0.9"],
        "picture_seeds": list(range(1, 13)),
    }
    name = f"csv:{tmp_path / 'captions.csv'}"
    cases, _ = run(name, store, **options)
    case_names = set(zip(cases["item"], cases["rule"], strict=True))
    items = registry.load_dataset(name, tmp_path).items
    paths, unchanged = {item.id: item.image.path for item in items}, []
    plain = {
        path: np.asarray(pictures.open_picture(Picture(path))) for path in sorted(paths.values())
    }
    for strength in options["pictures"]:
        kind, lam = strength.split(":")
        for seed in options["picture_seeds"]:
            for one, edit in mix.picture_edits(paths, kind, float(lam), seed).items():
                edited = pictures.open_picture(Picture(paths[one], edit))
                same = np.array_equal(np.asarray(edited), plain[paths[one]])
                assert ((one, f"{strength}:seed{seed}") in case_names) != same
                unchanged += [(one, strength, seed)] * same
    dropped = store.cases(store.runs()[-1]["case_key"]).manifest()["dropped"]
    assert dropped == Counter(f"{strength}: changes no pixel" for _, strength, _ in unchanged)
    assert {strength for _, strength, _ in unchanged} == set(options["pictures"])
    for top in {Picture.from_name(name) for name in cases["top"]}:
        assert not np.array_equal(np.asarray(pictures.open_picture(top)), plain[top.path])


def test_mixing_identical_pictures_gives_no_cases(store, tmp_path):
    for number in range(3):
        Image.new("RGB", (16, 16), "white").save(tmp_path / f"{number}.png")
    lines = [f"{number}.png,A dog beside {number} cars." for number in range(3)]
    (tmp_path / "captions.csv").write_text("\n".join(["image,caption", *lines]))
    with pytest.raises(InvalidInput, match=r"has no cases .*mix:0.8: changes no pixel: 3"):
        run(f"csv:{tmp_path / 'captions.csv'}", store, policies=[])


def test_altered_captions_of_a_released_file_are_used_and_normalized(store, tmp_path):
    rows = []
    for number in range(6):
        name = f"COCO_val2014_{number:012}.jpg"
        Image.new("RGB", (32, 32), (40 * number, 9, 9)).save(tmp_path / name)
        originals = [f"A Dog number {number}, version {v}." for v in range(5)]
        rows.append(
            {
                "image": f"val2014/{name}",
                "caption": [*originals, *[f"a cat {number} {v}" for v in range(5)]],
            }
        )
    (tmp_path / "released.json").write_text(json.dumps(rows))
    cases, _ = run(f"rococo:{tmp_path / 'released.json'}@{tmp_path}", store)
    assert set(cases[cases["kind"] == "i2t"]["subtype"]) == {"released"}
    raw = run(f"rococo:{tmp_path / 'released.json'}@{tmp_path}", store, normalise=False)[0]
    # the control scores texts with another spelling differently
    assert not np.allclose(cases["margin"], raw["margin"])


def test_influence_changes_the_replaced_words(tiny, store):
    cases, _ = run(tiny, store, influence=["control:random"])
    plain, _ = run(tiny, store)
    altered = [
        {text for row in table[table["kind"] == "i2t"].itertuples() for text in row.texts}
        for table in (cases, plain)
    ]
    assert altered[0] != altered[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ["same-concpet"]}, "same-concpet"),
        ({"policies": ["danger:many"]}, "danger:many"),
        ({"policies": ["delete:low-ei"]}, "needs EI scores"),
        ({"pictures": ["mix:1.5"]}, "mix:1.5"),
        ({"pictures": ["blur:0.9"]}, "blur"),
    ],
)
def test_an_invalid_option_value_is_refused_in_one_line(tiny, store, options, message):
    with pytest.raises((InvalidInput, NotFound)) as caught:
        run(tiny, store, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"policies": ["rand-voca", "rand-voca:1"]},
            "'policies' contains the same edit twice, as 'rand-voca' and 'rand-voca:1'",
        ),
        (
            {"policies": ["danger:2", "danger:02"]},
            "'policies' contains the same edit twice, as 'danger:2' and 'danger:02'",
        ),
        (
            {"pictures": ["mix:.9", "patch:0.9", "mix:0.90"]},
            "'pictures' contains the same edit twice, as 'mix:.9' and 'mix:0.90'",
        ),
    ],
)
def test_two_names_of_the_same_edit_are_refused(tiny, store, options, message):
    with pytest.raises(InvalidInput) as caught:
        run(tiny, store, **options)
    assert str(caught.value) == f"Option {message}. Remove one."
