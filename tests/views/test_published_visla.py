"""VISLA's published numbers, checked against each other and against its text."""

from collections import defaultdict

from tests.views.printed_cells import CELLS, VALUE, count_roundings, has_note, pick, swap


def visla_name(model):
    """Return one spelling for models that VISLA's tables spell differently."""
    name = model.lower().replace("/", "-").replace("xvlm-itr-", "xvlm-16m-")
    return name.replace("large(custom", "large (custom")


def test_repeated_cells_of_visla_tables_agree_or_have_a_note():
    prints = defaultdict(list)
    for key in VALUE:
        if key[0] == "visla" and key[2] != "none":
            prints[key[2], key[3], visla_name(key[4]), key[5]].append(key)
    repeated = [keys for keys in prints.values() if len(keys) > 1]
    # 3 with 5; 4, except BLIP's cells, with 8 or 9; all of 7 with 8 or 9, of which two models are also in 4
    assert len(repeated) == 80 + (76 - 4) + (60 - 8)
    for keys in repeated:
        values = [VALUE[key] for key in keys]
        assert max(values) - min(values) < 0.011
        if len(set(values)) > 1:
            assert all("prints" in CELLS[key]["note"] for key in keys)


def test_visla_tables_give_a_model_the_same_size_and_data():
    prints = defaultdict(set)
    for key in VALUE:
        if key[0] == "visla" and key[2] == "none":
            prints[visla_name(key[4]), key[3], key[5], CELLS[key]["unit"]].add((VALUE[key], key))
    differ = {fact: keys for fact, keys in prints.items() if len({value for value, _ in keys}) > 1}
    assert set(differ) == {("cyclip", "all", "pretraining_samples", "million")}
    assert all("print" in CELLS[key]["note"] for keys in differ.values() for _, key in keys)


def test_visla_accuracies_are_within_the_bounds_of_their_two_comparisons():
    checked = 0
    for metric in ("t2t_accuracy", "i2t_accuracy"):
        for key, both in pick("visla", (2, 8, 9), metric).items():
            part = swap(key, table="3" if key[1] == "2" else key[1], metric="p1_n")
            if part in VALUE:
                first, second = VALUE[part], VALUE[swap(part, metric="p2_n")]
                assert first + second - 100 - 0.03 <= both <= min(first, second) + 0.02
                checked += 1
    assert checked == 20 * 2 + 34 * 2


def test_visla_models_not_better_on_images_than_on_text_have_a_note():
    worse = set()
    for key, value in pick("visla", (4, 7, 8, 9), "i2t_accuracy").items():
        text = swap(key, split="t2t", metric="t2t_accuracy")
        if value <= VALUE.get(text, -1):
            worse |= {key, text}
    assert len(worse) == 20
    assert worse == has_note("the text says that all models do better on I2T than on T2T")


def test_visla_models_not_worse_on_spatial_than_on_generic_texts_have_a_note():
    rising = set()
    for key, generic in pick("visla", (4, 7, 8), "t2t_accuracy").items():
        table = {"8": "9"}.get(key[1], key[1])
        spatial = swap(key, table=table, dataset="visla_spatial")
        if key[2] == "visla_generic" and VALUE[spatial] >= generic:
            rising |= {key, spatial}
    assert {key[4] for key in rising} == {"RN50x4", "RN50x16", "BLIP-Caption-COCO"}
    assert rising == has_note("the text says that all models do worse at T2T on the spatial part")


def test_visla_negclip_below_clip_on_spatial_texts_has_a_note():
    spatial = {
        key: value
        for key, value in pick("visla", (4, 9), "t2t_accuracy").items()
        if key[2] == "visla_spatial"
    }
    clip = {value for key, value in spatial.items() if visla_name(key[4]) == "clip-vit-b-32"}
    assert clip == {30.16}
    below = {
        key
        for key, value in spatial.items()
        if key[4] in ("NegCLIP", "CLIP-SVLC") and value < min(clip)
    }
    assert len(below) == 2 and below == has_note("the text says that NegCLIP does better at T2T")


def test_both_names_of_blip_in_visla_have_a_note():
    facts = defaultdict(dict)
    for key, value in VALUE.items():
        if key[0] == "visla" and key[4] in ("BLIP", "BLIP-Caption-COCO"):
            facts[key[4]].setdefault(key[2:4] + key[5:], value)
            assert "BLIP" in CELLS[key]["note"]
    blip, caption = facts["BLIP"], facts["BLIP-Caption-COCO"]
    same = {name for name in blip if blip[name] == caption[name]}
    assert {name[2] for name in same} == {
        "parameters",
        "embedding_dimension",
        "pretraining_samples",
    }
    assert all(name[2].endswith("accuracy") for name in set(blip) - same)


def test_scores_that_no_count_of_their_dataset_can_give_have_a_note():
    sizes = {"visla_generic": 973, "visla_spatial": 640, "eq_gebc": 1814}
    keys = [key for key in VALUE if key[2] in sizes and key[:2] != ("eqben", "7")]  # 7 has 20
    roundings = {key: count_roundings(key, sizes[key[2]]) for key in keys}
    n_without = dict.fromkeys(sizes, 0)
    n_up = dict.fromkeys(sizes, 0)
    for key, ways in roundings.items():
        note = f"no count of {sizes[key[2]]:,} samples gives this value"
        if not ways:
            n_without[key[2]] += 1
            assert f"{note}, rounded or cut" in CELLS[key]["note"]
        elif ways == {"rounded up"}:
            n_up[key[2]] += 1
            assert f"{note} but rounded up" in CELLS[key]["note"]
        else:
            assert note not in CELLS[key]["note"]
    assert n_without == {"visla_generic": 9, "visla_spatial": 7, "eq_gebc": 4}
    assert n_up == {"visla_generic": 9, "visla_spatial": 5, "eq_gebc": 2}
