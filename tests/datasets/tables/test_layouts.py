"""A few rows in the released layout of each dataset, and the expected items and cases."""

import json
import tomllib
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vlprobe import registry, views
from vlprobe.datasets import audit, table
from vlprobe.datasets.tables import cases, layouts, reader
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.probes import eqben, visla
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures as scoring_pictures
from vlprobe.storage.store import Store
from vlprobe.types import Item

RELEASED = tomllib.loads(Path(__file__).with_name("released.toml").read_text("utf-8"))
TABLES = {table["file"]: table for table in RELEASED["tables"]}


def summary(item: Item) -> dict:
    """Return the fields of an item that released.toml lists. An item without a subset has no such field."""
    pictures = [picture for picture in (item.image, item.foil_image) if picture]
    subset = {"subset": item.tags["subset"]} if "subset" in item.tags else {}
    return {
        "id": item.id,
        "pictures": [picture.path.name for picture in pictures],
        "captions": list(item.captions),
        "foils": list(item.foils),
    } | subset


def paint(folder: Path, *names: str) -> Path:
    """Write different pictures with these names into the folder and its subfolders."""
    for number, name in enumerate(dict.fromkeys(names)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 12), (number * 7 % 256, len(name), 90)).save(file)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write every picture that the released rows name."""
    return paint(tmp_path_factory.mktemp("pictures"), *RELEASED["pictures"])


@pytest.mark.parametrize("file", TABLES)
def test_a_released_layout_is_recognized_checked_and_read(
    file: str, pictures: Path, tmp_path: Path
):
    path, layout = tmp_path / file, TABLES[file].get("layout")
    path.write_text(TABLES[file]["content"])
    items = registry.load_dataset(f"table:{path}@{pictures}", tmp_path / "cache").items
    assert [summary(item) for item in items] == TABLES[file]["items"]
    named = f"table:{path}@{pictures}+layout={layout}" if layout else f"table:{path}@{pictures}"
    assert table.load(named, tmp_path / "cache").items == tuple(items)
    findings = {finding.name: finding for finding in audit.check(items, tmp_path / "cache")}
    assert findings["repeated_caption"].of == len(items)
    assert ("unchanged" in findings) == any(item.foils for item in items)
    for item in items:
        if item.foils:
            cases, dropped = eqben.PROBE.cases(item, {}, 0)
            assert not dropped
            assert len(cases) == (1 if item.foil_image else len(item.foils))
            assert all(case.texts[0] == item.captions[0] for case in cases)
        if len(item.captions) == 2 and item.foils:
            kinds = {case.edit.kind for case in visla.PROBE.cases(item, {}, 0)[0]}
            assert kinds == {"t2t", "i2t"}


def test_every_layout_has_test_rows():
    elsewhere = {"vismin", "bivlc", "naturalbench", "svo", "socialcounterfactuals"}
    elsewhere |= {"vsr-foils", "vsr-triplets"}
    named = {table["layout"] for table in RELEASED["tables"] if "layout" in table}
    assert named | elsewhere == set(layouts.NAMES)


def test_the_docs_name_every_layout_and_every_file_format():
    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "data.md").read_text()
    section = (docs / "reference" / "columns.md").read_text().partition("## Layouts of tables")[2]
    table = section.partition("\n## ")[0].splitlines()
    assert [line.split("`")[1] for line in table if line.startswith("| `")] == list(layouts.NAMES)
    for suffix in (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".tar"):
        assert f"`{suffix}`" in page
        reader.require_kind(Path(f"x{suffix}"))


def encoded(color: str) -> dict:
    buffer = BytesIO()
    Image.new("RGB", (8, 8), color).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def write_parquet(path: Path, rows: list[dict]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    return path


def test_pictures_embedded_in_bivlc_and_vismin_tables_are_read(tmp_path: Path):
    bivlc = {
        "image": encoded("red"),
        "caption": "A man and a ball.",
        "negative_caption": "A man, a child and a ball.",
        "negative_image": encoded("blue"),
        "type": "add",
        "subtype": "obj",
    }
    vismin = {
        "image_0": encoded("red"),
        "text_0": "A cat left of a dog.",
        "image_1": encoded("green"),
        "text_1": "A dog left of a cat.",
        "id": "r_1",
        "category": "relation",
        "bounding_boxes": "[]",
    }
    for name, row, subset in (("bivlc", bivlc, "add"), ("vismin", vismin, "relation")):
        file = write_parquet(tmp_path / f"{name}.parquet", [row])
        (item,) = table.load(f"table:{file}", tmp_path / "cache").items
        assert item.tags["subset"] == subset
        assert item.image and item.foil_image
        assert item.captions and item.foils
        assert scoring_pictures.open_picture(item.image).getpixel((0, 0)) == (255, 0, 0)
        assert scoring_pictures.open_picture(item.foil_image).getpixel((0, 0)) != (255, 0, 0)


def test_a_row_of_naturalbench_becomes_a_pair_for_each_question(tmp_path: Path):
    row = {
        "Index": 4,
        "Question_0": "Is the squirrel climbing up?",
        "Image_0_Question_0": "Yes",
        "Image_1_Question_0": "No",
        "Question_1": "Is the squirrel climbing down?",
        "Image_0_Question_1": "No",
        "Image_1_Question_1": "Yes",
        "Question_Type": "yes_no",
        "Source": "flickr",
    }
    row |= {"Image_0": encoded("red"), "Image_1": encoded("blue")}
    file = write_parquet(tmp_path / "test.parquet", [row])
    first, second = table.load(f"table:{file}", tmp_path / "cache").items
    assert (first.captions, first.foils) == (
        ("Is the squirrel climbing up? Yes",),
        ("Is the squirrel climbing up? No",),
    )
    assert (second.captions, second.foils) == (
        ("Is the squirrel climbing down? No",),
        ("Is the squirrel climbing down? Yes",),
    )
    assert first.image == second.image and first.cluster == second.cluster != ""
    assert first.tags == {"subset": "yes_no", "source": "flickr"}


def test_two_svo_rows_with_the_same_pictures_in_reverse_become_a_pair(
    tmp_path: Path,
):
    paint(tmp_path, "20.jpg", "21.jpg", "22.jpg")
    file = tmp_path / "svo_probes.csv"
    file.write_text(
        "sentence,pos_triplet,neg_triplet,pos_url,neg_url,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"
        'A girl sits.,"girl,sit,shore","girl,run,shore",http://x/a.jpg,http://x/b.jpg,20,21,False,True,False\n'
        'A girl runs.,"girl,run,shore","girl,sit,shore",http://x/b.jpg,http://x/a.jpg,21,20,False,True,False\n'
        'A boy sits.,"boy,sit,shore","girl,sit,shore",http://x/c.jpg,http://x/a.jpg,22,20,True,False,False\n'
    )
    loaded = table.load(f"table:{file}", tmp_path / "cache")
    (item,) = map(summary, loaded.items)
    assert item["pictures"] == ["20.jpg", "21.jpg"]
    assert (item["captions"], item["foils"]) == (["A girl sits."], ["A girl runs."])
    assert "1 of 3 rows have no row for their second picture" in loaded.notes[0]
    pictures_and_captions = f"table:{file}+image=pos_image_id+caption=sentence"
    assert len(table.load(pictures_and_captions, tmp_path / "cache").items) == 3


def test_options_name_the_columns_and_select_a_split(tmp_path: Path):
    paint(tmp_path, "a.png", "b.png")
    file = tmp_path / "odd.csv"
    file.write_text(
        "photo,Says,lie,split,who\na.png,True.,False.,test,me\nb.png,Yes.,No.,train,you\n"
    )
    name = f"table:{file}+image=photo+caption=says+foil=lie+subset=who+split=train"
    (item,) = table.load(name, tmp_path / "cache").items
    captions = {"captions": ["Yes."], "foils": ["No."]}
    assert summary(item) == {"id": "odd/1", "pictures": ["b.png"], "subset": "you"} | captions
    for option, reason in (
        ("foil=truth", "no column 'truth'"),
        ("split=dev", "no rows with split 'dev'. Expected one of: test, train"),
        ("layout=aro", "does not match the layout aro, which has the columns bbox_h"),
        ("colour=red", "'colour=red' in .* is not a valid option"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            table.load(f"table:{file}+image=photo+caption=says+{option}", tmp_path / "cache")
    with pytest.raises(NotFound, match=r"No layout named 'winogroud'. Did you mean 'winoground'"):
        table.load(f"table:{file}+layout=winogroud", tmp_path / "cache")


VSR = TABLES["test.jsonl"]["content"]


def test_a_false_vsr_statement_is_a_foil_of_the_true_one_with_another_relation(
    tmp_path: Path,
):
    file = tmp_path / "test.jsonl"
    file.write_text(VSR)
    loaded = table.load(f"table:{file}+layout=vsr-foils+unpictured", tmp_path / "cache")
    (item,) = loaded.items
    assert summary(item) == {
        "id": "test/0",
        "pictures": ["18.jpg"],
        "captions": ["The cat is inside the sink."],
        "foils": ["The cat is left of the sink."],
        "subset": "inside",
    }
    assert "2 of 4 rows have no statement with the opposite label that differs" in " ".join(
        loaded.notes
    )
    captions = table.load(f"table:{file}+unpictured", tmp_path / "cache")
    assert "2 of 4 rows are labeled false and are left out" in " ".join(captions.notes)


def test_vsr_statements_with_swapped_subject_and_object_are_a_triplet(
    tmp_path: Path,
):
    others = [
        ("20.jpg", "The cat is inside the bag.", 1, "inside"),
        ("20.jpg", "The sink is inside the cat.", 0, "inside"),
        ("21.jpg", "The sink is under the bus.", 1, "under"),
        ("18.jpg", "The cat is touching the sink.", 1, "touching"),
    ]
    names = ("image", "caption", "label", "relation")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in others]
    file = tmp_path / "test.jsonl"
    file.write_text(VSR.rstrip("\n") + "\n" + "\n".join(lines))
    loaded = table.load(f"table:{file}+layout=vsr-triplets+unpictured", tmp_path / "cache")
    (item,) = loaded.items
    assert (item.id, item.tags["subset"]) == ("test/0-2", "spatial")
    assert item.captions == ("The cat is inside the sink.", "The sink contains the cat.")
    # Word overlap by hand: 5 of 5, 4 of 6, 4 of 7; "touching" has 4 of 6 but is true of the picture.
    assert item.foils == (
        "The sink is inside the cat.",
        "The cat is inside the bag.",
        "The cat is left of the sink.",
    )
    assert "2 of 4 true statements have no true statement with subject" in " ".join(loaded.notes)
    kinds = [case.edit.kind for case in visla.PROBE.cases(item, {"edits": ""}, 0)[0] if case.edit]
    assert kinds == ["t2t", "i2t"]


def test_votes_that_are_not_whole_numbers_are_refused_with_their_row(tmp_path: Path):
    row = {"image_file": "a.png", "caption": "A dog.", "foil": "A cat."}
    lines = [row | {"linguistic_phenomena": "actions", "mturk.caption": n} for n in (3, 2.5)]
    file = tmp_path / "valse.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InvalidInput, match=r"row 2, column 'mturk\.caption': expected a whole number"
    ):
        table.load(f"table:{file}+unpictured", tmp_path / "cache")


def test_lists_in_the_column_of_ids_are_no_ids(tmp_path: Path):
    row = {"image": "a.png", "caption": "A dog.", "negative": "A cat.", "id": ["q", "r"]}
    file = tmp_path / "lists.jsonl"
    file.write_text("\n".join(map(json.dumps, [row, row | {"caption": "A bird."}])))
    items = table.load(f"table:{file}+unpictured", tmp_path / "cache").items
    assert [item.captions for item in items] == [("A dog.",), ("A bird.",)]


def test_an_invalid_label_of_vsr_is_refused_with_its_row(tmp_path: Path):
    file = tmp_path / "test.jsonl"
    file.write_text(VSR.replace('"label": 0, "relation": "on"', '"label": 2, "relation": "on"'))
    with pytest.raises(InvalidInput, match="row 4, column 'label': expected 0 or 1"):
        table.load(f"table:{file}+unpictured", tmp_path / "cache")


@pytest.mark.parametrize(
    ("right", "wrong"), [("1", "0"), ("True", "False"), ("yes", "no"), ("1.0", "0.0")]
)
def test_captions_labeled_false_are_refused_with_the_options_to_use(
    right: str, wrong: str, tmp_path: Path
):
    """An earlier version read the false captions of VSR and SeeTRUE, half of them, as true ones."""
    file = tmp_path / "SeeTRUE.csv"
    lines = [f"a.png,A dog.,{right},dog", f"a.png,A cat.,{wrong},cat", f"b.png,A bus.,{right},bus"]
    file.write_text("\n".join(["image,text,label,source", *lines]) + "\n")
    name = f"table:{file}+unpictured"
    for read in (table.load, table.lint):
        with pytest.raises(InvalidInput) as caught:
            read(name, tmp_path / "cache")
        assert f"1 of 3 captions have the label '{wrong}'" in str(caught.value)
        assert f"{name}+label={right}." in str(caught.value)
        assert f"{name}+subset=label." in str(caught.value)
    chosen = table.load(f"{name}+label={right}", tmp_path / "cache").items
    assert [item.captions for item in chosen] == [("A dog.",), ("A bus.",)]
    assert len(table.lint(f"{name}+label={right}", tmp_path / "cache")) == 3
    every = table.load(f"{name}+subset=label", tmp_path / "cache").items
    assert [item.captions for item in every] == [("A dog.", "A cat."), ("A bus.",)]
    with pytest.raises(InvalidInput, match=r"no rows with label '7'. Expected one of"):
        table.load(f"{name}+label=7", tmp_path / "cache")


def test_labels_other_than_true_and_false_are_tags(tmp_path: Path):
    file = tmp_path / "x.csv"
    for values in (("cat", "dog"), ("0", "1", "2"), ("1", "1"), ("0", "7")):
        rows = [f"{n}.png,A thing number {n}.,{value}" for n, value in enumerate(values)]
        file.write_text("\n".join(["image,caption,label", *rows]) + "\n")
        items = table.load(f"table:{file}+unpictured", tmp_path / "cache").items
        assert [item.tags["label"] for item in items] == list(values)


def test_captions_that_are_ids_are_refused(tmp_path: Path):
    """CxC's sits_val.csv contains ids of COCO captions instead of captions."""
    file = tmp_path / "sits_val.csv"
    rows = [f"COCO_val2014_{n}.jpg,COCO_val2014:sentid:{648388 + n},5.0" for n in range(3)]
    file.write_text("\n".join(["image,caption,agg_score", *rows]) + "\n")
    for read in (table.load, table.lint):
        with pytest.raises(
            InvalidInput,
            match="'COCO_val2014:sentid:648388' and all other values are ids, not captions",
        ):
            read(f"table:{file}+unpictured", tmp_path / "cache")
    file.write_text("image,caption\na.png,COCO_val2014:sentid:648388\nb.png,A dog.\n")
    assert len(table.load(f"table:{file}+unpictured", tmp_path / "cache").items) == 2


def test_a_list_of_naturalbench_questions_is_not_read_as_cola_pairs(tmp_path: Path):
    file = tmp_path / "train.json"
    rows = [["Is the squirrel climbing up the fence?", "test_04956.jpg", "Yes", "yes_no"]] * 2
    file.write_text(json.dumps(rows))
    with pytest.raises(
        InvalidInput, match=r"a picture \('test_04956.jpg'\) where Cola has a caption"
    ):
        table.load(f"table:{file}+unpictured", tmp_path / "cache")


def test_missing_pictures_are_reported_as_equal_only_by_name(tmp_path: Path):
    rows = "image,caption,negative\na.png,A dog.,A cat.\na.png,Dogs.,Cats.\n"
    paint(tmp_path, "a.png")
    (tmp_path / "x.csv").write_text(rows)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.csv").write_text(rows)
    for name, how in (
        (f"table:{tmp_path / 'x.csv'}", "(byte for byte), so the items"),
        (
            f"table:{tmp_path / 'elsewhere' / 'x.csv'}+unpictured",
            "(byte for byte, or by name if the file is missing), so the items",
        ),
    ):
        items = table.load(name, tmp_path / "cache").items
        findings = {finding.name: finding for finding in audit.check(items, tmp_path / "cache")}
        assert findings["shared_image"].count == 2 and how in findings["shared_image"].meaning


def test_a_table_without_a_matching_layout_is_refused_with_its_columns(tmp_path: Path):
    file = tmp_path / "odd.csv"
    file.write_text("photo,says\na.png,x\n")
    with pytest.raises(
        InvalidInput, match=r"does not match any layout. It has the columns photo, says. Expected"
    ):
        table.load(f"table:{file}", tmp_path / "cache")


def test_a_column_that_differs_within_a_picture_is_dropped_with_a_note(
    tmp_path: Path,
):
    for name in ("a.png", "b.png"):
        paint(tmp_path, name)
    rows = ["image,caption,place,light,x", "a.png,one,in,day,1", "b.png,two,in,day,2"]
    rows += ["b.png,three,out,day,2", "a.png,four,in,day,1"]
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    loaded = table.load(f"table:{file}", tmp_path / "cache")
    assert all(set(item.tags) == {"light", "x"} for item in loaded.items)
    (note,) = (note for note in loaded.notes if "mine.csv" in note)
    assert "because rows of one picture differ in them: place (first: b.png)" in note


def test_every_error_shows_the_name_that_reads_the_table(tmp_path: Path):
    """Use a table with custom column names and its pictures in another folder."""
    (tmp_path / "photos").mkdir()
    paint(tmp_path / "photos", "a.png")
    file = tmp_path / "odd.csv"
    file.write_text("photo,says\na.png,x\n", encoding="utf-8")
    form = f"table:{file}@FOLDER+image=COLUMN+caption=COLUMN"
    for name in (f"csv:{file}", f"table:{file}"):
        with pytest.raises(InvalidInput) as caught:
            registry.load_dataset(name, tmp_path / "cache")
        assert form in str(caught.value)
    written = form.replace("image=COLUMN", "image=photo").replace("caption=COLUMN", "caption=says")
    with pytest.raises(InvalidInput) as caught:
        registry.load_dataset(written.replace("@FOLDER", ""), tmp_path / "cache")
    assert f"name their folder: {written}" in str(caught.value)
    folder = tmp_path / "photos"
    items = registry.load_dataset(written.replace("FOLDER", str(folder)), tmp_path / "cache").items
    assert [item.image.path for item in items if item.image] == [folder / "a.png"]


def test_the_error_for_a_path_without_a_prefix_suggests_the_right_prefix(tmp_path: Path):
    paint(tmp_path, "a.png")
    file = tmp_path / "x.csv"
    file.write_text("image,caption\na.png,x\n")
    (tmp_path / "coco" / "annotations").mkdir(parents=True)
    (tmp_path / "coco" / "annotations" / "captions_val2017.json").write_text("{}")
    for path, prefix in ((file, "table"), (tmp_path, "folder"), (tmp_path / "coco", "coco")):
        for name in (str(path), f"{path}@{tmp_path}+available"):
            with pytest.raises(InvalidInput, match=f"write '{prefix}:{path}"):
                registry.check_name("datasets", name)
    with pytest.raises(NotFound):
        registry.check_name("datasets", "nothing-here")


def test_a_repeated_row_is_counted_and_skipped(tmp_path: Path):
    paint(tmp_path, "a.png")
    file = tmp_path / "x.jsonl"
    line = json.dumps({"image": "a.png", "caption": "A dog.", "negative": "A cat."})
    file.write_text(f"{line}\n{line}\n")
    loaded = table.load(f"table:{file}", tmp_path / "cache")
    assert len(loaded.items) == 1
    assert "1 of 2 rows repeat an earlier row" in loaded.notes[0]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        (
            "x.csv",
            b"image,caption,negative\na.png,,No.\n",
            "row 1, column 'caption': expected text",
        ),
        (
            "x.csv",
            b"image,caption\na.png,b,c\n",
            "line 2, has 3 fields, but the table has 2 columns",
        ),
        ("x.csv", b'image,caption\na.png,"b\n', "line 2: unexpected end of data"),
        ("x.csv", "image,caption\na.png,Caf\xe9\n".encode("latin-1"), "is not UTF-8"),
        ("x.csv", "image,caption\na.png,dog\n".encode("utf-16"), "is not UTF-8"),
        ("x.csv", b"", "has no columns"),
        ("x.csv", b"image,image,caption\na,b,c\n", "duplicate column names"),
        ("x.json", b'{"image": "a.png"}', "contains no rows. Expected"),
        ("x.json", b'[{"image": "a.png"}, 3]', "entry 1 is neither an object nor a list"),
        ("x.json", b'[["a", "b", "c", "d"], ["a"]]', "does not have the same layout in all rows"),
        ("x.parquet", b"PAR1" + bytes(50), "is not a valid table"),
        ("x.csv.gz", b"\x1f\x8b", "is compressed"),
        ("x.xlsx", b"PK", "ends in '.xlsx'. Expected a table"),
    ],
)
def test_each_defect_of_a_table_file_is_reported_in_one_line(
    file: str, content: bytes, reason: str, tmp_path: Path
):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidInput, match=reason) as refusal:
        table.load(f"table:{tmp_path / file}", tmp_path / "cache")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.tar", "folder.csv"])
def test_a_missing_table_is_refused_before_a_run(name: str, tmp_path: Path):
    (tmp_path / "folder.csv").mkdir()
    for act in (registry.check_name, lambda _, name: table.load(name, tmp_path / "cache")):
        with pytest.raises(InvalidInput, match=r"does not exist|cannot be read") as refusal:
            act("datasets", f"table:{tmp_path / name}")
        assert "\n" not in str(refusal.value)


def test_two_crops_of_one_picture_are_one_cluster(tmp_path: Path):
    paint(tmp_path, "2.jpg", "3.jpg")
    rows = [
        {"image_path": f"{image}.jpg", "bbox_x": x, "bbox_y": 0, "bbox_w": 4, "bbox_h": 4}
        | {"true_caption": "the cat and the dog", "false_caption": "the dog and the cat"}
        for image, x in ((2, 0), (2, 4), (3, 0))
    ]
    file = tmp_path / "relation.json"
    file.write_text(json.dumps(rows))
    items = table.load(f"table:{file}", tmp_path / "cache").items
    assert [item.cluster for item in items] == ["relation/0", "relation/0", ""]
    assert len({item.image and item.image.path for item in items}) == 3


@pytest.mark.full  # real data, seconds
@pytest.mark.parametrize(
    ("prefix", "file"),
    [
        ("triplets", "sugarcrepe/data/swap_obj.json"),
        ("triplets", "scpp/data/swap_att.json"),
        ("pairs", "valse/actant-swap.json"),
    ],
)
def test_released_files_give_the_same_items_as_their_dedicated_reader(
    prefix: str, file: str, shared_data: Path, tmp_path: Path
):
    """The dedicated readers are an independent implementation: they share no code with the table reader."""
    path = f"{shared_data / file}@{shared_data / 'coco_real' / 'val2017'}"
    option = "+unpictured" if prefix == "pairs" else "+available"
    before = registry.load_dataset(f"{prefix}:{path}{option}", tmp_path / "cache").items
    here = registry.load_dataset(f"table:{path}{option}", tmp_path / "cache").items
    assert len(here) > 10
    rows = [
        [(item.id, item.image, item.captions, item.foils) for item in items]
        for items in (before, here)
    ]
    assert rows[0] == rows[1]


def test_roles_without_a_column_share_one_list_of_values(tmp_path: Path):
    file = tmp_path / "x.csv"
    file.write_text("image,caption,negative\na.png,A dog.,A cat.\n")
    read = reader.read(file)
    values = cases.TableReading(read, layouts.recognized("x", read.names, "", {}))
    assert values.role("subset") is values.role("id")
    assert values.role("caption") is values.role("caption")


def test_socialcounterfactuals_queries_rank_the_pictures_of_their_gender(tmp_path: Path):
    """The prompts search the dataset's pictures: each query ranks only the pictures of its gender."""
    people = [("White", "male", "red"), ("white", "female", "blue"), ("Black", "Female", "green")]
    rows = [
        {
            "image": encoded(color),
            "counterfactual_set": f"0_{number}",
            "caption": f"A photo of a {race} {gender} barber",
            "a1": race,
            "a1_type": "race",
            "a2": gender,
            "a2_type": "gender",
        }
        for number, (race, gender, color) in enumerate(people)
    ]
    gallery = f"table:{write_parquet(tmp_path / 'train.parquet', rows)}"
    items = registry.load_dataset(gallery, tmp_path / "cache").items
    assert [item.tags["gender"] for item in items] == ["male", "female", "female"]
    assert [item.tags["race"] for item in items] == ["White", "White", "Black"]
    assert all(item.image and len(item.captions) == 1 for item in items)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(
        "".join(
            json.dumps({"caption": f"a White {gender} barber"}) + "\n"
            for gender in ("male", "female")
        )
    )
    options = {"gallery": gallery, "group": "gender"}
    request = Request(("control:random",), f"queries:{prompts}+p2", "prsm", options, examine=False)
    store = Store(tmp_path / "store")
    (manifest,) = execute(request, store)
    sizes = store.run(manifest["key"]).table("scores")["gallery_size"].to_pylist()
    assert sizes == [1, 2]
    question_set = views.runs.question_set(store, manifest["case_key"])
    cells = views.papers.beside(question_set, "control:random").dropna(subset=["run"])
    # a single man gives no ranking
    assert {split.partition("/")[0] for split in cells["split"]} == {"female"}
