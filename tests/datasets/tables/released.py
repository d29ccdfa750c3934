"""A few rows of each dataset's released layout, and the pictures that they name."""


def rows_of(first: str, *more: str) -> str:
    return "\n".join([first, *more]) + "\n"


# Layout, file, content, and of each item: id, pictures, captions, foils, subset.
RELEASED = [
    (
        "winoground",
        "examples.jsonl",
        '{"id": 0, "image_0": "ex_0_img_0", "image_1": "ex_0_img_1", "caption_0": "an old person kisses a young '
        'person", "caption_1": "a young person kisses an old person", "tag": "Adjective-Age", "secondary_tag": '
        '"Morpheme-Level", "num_main_preds": 1, "collapsed_tag": "Object"}\n',
        [
            (
                "examples/0",
                ["ex_0_img_0.png", "ex_0_img_1.png"],
                ["an old person kisses a young person"],
                ["a young person kisses an old person"],
                "examples",
            )
        ],
    ),
    (
        "eqben",
        "ann.json",
        '[{"image0": "a/1.jpg", "image1": "a/2.jpg", "caption0": ["left"], "caption1": ["right"]}]',
        [("ann/0", ["1.jpg", "2.jpg"], ["left"], ["right"], "ann")],
    ),
    (
        "colorswap",
        "test.json",
        '[{"id": 7, "caption_1": "a yellow umbrella and a white dress", "caption_2": "a white umbrella and a yellow '
        'dress", "image_1": "images/img_7_1.png", "image_2": "images/img_7_2.png", "image_source": "midjourney", '
        '"caption_source": "human"}]',
        [
            (
                "test/7",
                ["img_7_1.png", "img_7_2.png"],
                ["a yellow umbrella and a white dress"],
                ["a white umbrella and a yellow dress"],
                "test",
            )
        ],
    ),
    (
        "colorswap",
        "COLA_multiobjects_matching_benchmark.json",
        '[["https://cs-people.bu.edu/array/data/vg_gqa_images/2390970.jpg", "long giraffe right of brown giraffe", '
        '"https://cs-people.bu.edu/array/data/vg_gqa_images/2388902.jpg", "brown giraffe behind white giraffe"]]',
        [
            (
                "COLA_multiobjects_matching_benchmark/0",
                ["2390970.jpg", "2388902.jpg"],
                ["long giraffe right of brown giraffe"],
                ["brown giraffe behind white giraffe"],
                "COLA_multiobjects_matching_benchmark",
            )
        ],
    ),
    (
        "vismin-files",
        "object.csv",
        rows_of(
            "image_path,caption,edited_image_path,edited_caption,edit_id",
            "/val2017/1.jpg,Two men.,/1/0.png,Three men.,11",
        ),
        [("object/0", ["1.jpg", "0.png"], ["Two men."], ["Three men."], "object")],
    ),
    (
        "aro",
        "visual_genome_relation.json",
        '[{"image_id": "2", "image_path": "2.jpg", "bbox_x": 1, "bbox_y": 2, "bbox_w": 3, "bbox_h": 4, "true_caption": '
        '"the door is to the left of the man", "false_caption": "the man is to the left of the door", '
        '"relation_name": "to the left of"}]',
        [
            (
                "visual_genome_relation/0",
                ["crop=1,2,3,4"],
                ["the door is to the left of the man"],
                ["the man is to the left of the door"],
                "to the left of",
            )
        ],
    ),
    (
        "aro",
        "visual_genome_attribution.json",
        '[{"image_id": "2", "image_path": "2.jpg", "bbox_x": 1, "bbox_y": 2, "bbox_w": 3, "bbox_h": 4, "true_caption": '
        '"the crouched cat and the open door", "false_caption": "the open cat and the crouched door", "attributes": '
        '["crouched", "open"], "obj1_name": "cat", "obj2_name": "door"}]',
        [
            (
                "visual_genome_attribution/0",
                ["crop=1,2,3,4"],
                ["the crouched cat and the open door"],
                ["the open cat and the crouched door"],
                "visual_genome_attribution",
            )
        ],
    ),
    (
        "whatsup",
        "controlled_images_dataset.json",
        '[{"image_path": "beer-bottle_on_armchair.jpeg", "caption_options": ["A bottle on an armchair", '
        '"A bottle to the right of an armchair", "A bottle under an armchair"]}]',
        [
            (
                "controlled_images_dataset/0",
                ["beer-bottle_on_armchair.jpeg"],
                ["A bottle on an armchair"],
                ["A bottle to the right of an armchair", "A bottle under an armchair"],
                "controlled_images_dataset",
            )
        ],
    ),
    (
        "whatsup",
        "coco_qa_one_obj.json",
        '[[397133, "A photo of a fork on the left", "A photo of a fork on the right"]]',
        [
            (
                "coco_qa_one_obj/0",
                ["000000397133.jpg"],
                ["A photo of a fork on the left"],
                ["A photo of a fork on the right"],
                "coco_qa_one_obj",
            )
        ],
    ),
    (
        "mmvp-vlm",
        "Questions.csv",
        rows_of(
            "Question ID,Type,Statement",
            "1,Orientation,a dog facing left",
            "2,Orientation,a dog facing right",
        ),
        [
            (
                "Questions/1-2",
                ["1.jpg", "2.jpg"],
                ["a dog facing left"],
                ["a dog facing right"],
                "Orientation",
            )
        ],
    ),
    (
        "negbench-mcq",
        "COCO_val_mcq.csv",
        rows_of(
            "image_path,caption_0,caption_1,caption_2,caption_3,correct_answer,correct_answer_template",
            "data/5.jpg,a dog,no dog,a cat but no dog,a dog but no cat,3,hybrid",
        ),
        [
            (
                "COCO_val_mcq/0",
                ["5.jpg"],
                ["a dog but no cat"],
                ["a dog", "no dog", "a cat but no dog"],
                "hybrid",
            )
        ],
    ),
    (
        "negbench",
        "COCO_val_retrieval.csv",
        rows_of(
            "positive_objects,negative_objects,filepath,image_id,captions",
            """"['cat']","['dog']",data/6.jpg,6,"['A cat.', ""A cat's paw.""]\"""",
        ),
        [("data/6.jpg", ["6.jpg"], ["A cat.", "A cat's paw."], [], None)],
    ),
    (
        "crepe",
        "prod_vg_hard_negs_atom_complexity_4.csv",
        rows_of(
            "image_id,caption,hard_negs,x,y,width,height",
            """7,a girl on a bench,"['a boy on a bench', 'a girl on a bed']",0,1,5,6""",
        ),
        [
            (
                "prod_vg_hard_negs_atom_complexity_4/0",
                ["crop=0,1,5,6"],
                ["a girl on a bench"],
                ["a boy on a bench", "a girl on a bed"],
                "prod_vg_hard_negs_atom_complexity_4",
            )
        ],
    ),
    (
        "negclip",
        "valid_neg_clip.tsv",
        rows_of(
            "\ttitle\tfilepath\tneg_caption\tneg_image",
            "0\tA child and a yak.\tcoco/val2014/8.jpg\t['A yak and a child.']\t[2973, 1515]",
        ),
        [
            (
                "valid_neg_clip/0",
                ["8.jpg"],
                ["A child and a yak."],
                ["A yak and a child."],
                "valid_neg_clip",
            )
        ],
    ),
    (
        "valse",
        "actions.json",
        '{"actions_test_0": {"dataset": "SWiG", "linguistic_phenomena": "actions", "image_file": "9.jpg", "caption": '
        '"A man exercises.", "foil": "A man sleeps.", "mturk": {"foil": 0, "caption": 3, "other": 0}}, '
        '"actions_test_1": {"dataset": "SWiG", "linguistic_phenomena": "actions", "image_file": "9.jpg", "caption": '
        '"A man runs.", "foil": "A man rests.", "mturk": {"foil": 2, "caption": 1, "other": 0}}}',
        [("actions/actions_test_0", ["9.jpg"], ["A man exercises."], ["A man sleeps."], "actions")],
    ),
    (
        "sugarcrepe",
        "swap_obj.json",
        '{"0": {"filename": "10.jpg", "caption": "A cat by a dog.", "negative_caption": "A dog by a cat."}}',
        [("swap_obj/0", ["10.jpg"], ["A cat by a dog."], ["A dog by a cat."], "swap_obj")],
    ),
    (
        "sugarcrepe-pp",
        "swap_att.json",
        '[{"id": 3, "filename": "10.jpg", "caption": "P one", "caption2": "P two", "negative_caption": "N"}]',
        [("swap_att/3", ["10.jpg"], ["P one", "P two"], ["N"], "swap_att")],
    ),
    (
        "foil-it",
        "foilv1.0_test_2017.json",
        '{"info": {}, "licenses": [], "images": [{"id": 5, "file_name": "11.jpg"}], "annotations": [{"image_id": 5, '
        '"id": 77, "foil_id": 900, "caption": "A dog runs.", "foil": false, "target_word": "ORIG", "foil_word": '
        '"ORIG"}, {"image_id": 5, "id": 77, "foil_id": 901, "caption": "A cat runs.", "foil": true, "target_word": '
        '"dog", "foil_word": "cat"}]}',
        [
            (
                "foilv1.0_test_2017/901",
                ["11.jpg"],
                ["A dog runs."],
                ["A cat runs."],
                "foilv1.0_test_2017",
            )
        ],
    ),
    (
        "vl-checklist",
        "color.json",
        '[["VG_100K/12.jpg", {"POS": ["brown knob", "old door"], "NEG": ["teal knob", "new door"]}]]',
        [
            ("color/0-0", ["12.jpg"], ["brown knob"], ["teal knob"], "color"),
            ("color/0-1", ["12.jpg"], ["old door"], ["new door"], "color"),
        ],
    ),
    (
        "open_clip",
        "train.csv",
        rows_of("filepath\ttitle", "13.jpg\tA bus.", "13.jpg\tA red bus."),
        [("13.jpg", ["13.jpg"], ["A bus.", "A red bus."], [], None)],
    ),
    (
        "vsr",
        "test.jsonl",
        rows_of(
            '{"image": "18.jpg", "image_link": "http://images.cocodataset.org/18.jpg", "caption": "The cat is '
            'inside the sink.", "label": 1, "relation": "inside", "annotator_id": 4, "vote_true_validator_id": [1, 2]}',
            '{"image": "18.jpg", "image_link": "http://images.cocodataset.org/18.jpg", "caption": "The cat is '
            'left of the sink.", "label": 0, "relation": "left of", "annotator_id": 4, "vote_true_validator_id": []}',
            '{"image": "18.jpg", "image_link": "http://images.cocodataset.org/18.jpg", "caption": "The sink '
            'contains the cat.", "label": 1, "relation": "contains", "annotator_id": 9, "vote_true_validator_id": [3]}',
            '{"image": "19.jpg", "image_link": "http://images.cocodataset.org/19.jpg", "caption": "The dog is '
            'on the bus.", "label": 0, "relation": "on", "annotator_id": 9, "vote_true_validator_id": [3]}',
        ),
        [
            (
                "18.jpg",
                ["18.jpg"],
                ["The cat is inside the sink.", "The sink contains the cat."],
                [],
                None,
            )
        ],
    ),
    (
        "",
        "dataset_coco.json",
        '{"dataset": "coco", "images": [{"filepath": "val2014", "filename": "14.jpg", "cocoid": 14, "imgid": 0, '
        '"sentids": [1, 2], "split": "test", "sentences": [{"raw": "One.", "tokens": ["one"], "imgid": 0, "sentid": '
        '1}, {"raw": "Two.", "tokens": ["two"], "imgid": 0, "sentid": 2}]}, {"filepath": "val2014", "filename": '
        '"15.jpg", "imgid": 1, "sentids": [3], "split": "train", "sentences": [{"raw": "Three."}]}]}',
        [
            ("val2014/14.jpg", ["14.jpg"], ["One.", "Two."], [], None),
            ("val2014/15.jpg", ["15.jpg"], ["Three."], [], None),
        ],
    ),
    (
        "",
        "captions_val2017.json",
        '{"images": [{"id": 16, "file_name": "16.jpg", "width": 4, "height": 4}], "annotations": [{"id": 1, '
        '"image_id": 16, "caption": "A pizza."}]}',
        [("16.jpg", ["16.jpg"], ["A pizza."], [], None)],
    ),
    (
        "",
        "mine.csv",
        rows_of("image,caption,negative", "17.jpg,A dog.,A cat."),
        [("mine/0", ["17.jpg"], ["A dog."], ["A cat."], "mine")],
    ),
]


ON_DISK = [
    *("ex_0_img_0.png", "ex_0_img_1.png", "a/1.jpg", "a/2.jpg", "images/img_7_1.png", "8.jpg"),
    *("images/img_7_2.png", "2390970.jpg", "2388902.jpg", "val2017/1.jpg", "1/0.png", "2.jpg"),
    *("beer-bottle_on_armchair.jpeg", "000000397133.jpg", "Orientation/1.jpg", "9.jpg", "7.jpg"),
    *("Orientation/2.jpg", "data/5.jpg", "data/6.jpg", "coco/val2014/8.jpg", "10.jpg", "11.jpg"),
    *("VG_100K/12.jpg", "13.jpg", "val2014/14.jpg", "val2014/15.jpg", "16.jpg", "17.jpg"),
    "18.jpg",
]
