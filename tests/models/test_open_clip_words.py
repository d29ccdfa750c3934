"""A memory of words gives OpenCLIP's own ids, whatever the text."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from open_clip.tokenizer import SimpleTokenizer

from vlprobe.models import open_clip_words
from vlprobe.models.open_clip_words import Words, quick

OPEN_CLIP = SimpleTokenizer()
WORDS = Words(SimpleTokenizer())
HOSTILE = [
    "",
    " ",
    "''s it's THE DOG'S they'll we've I'm I'd don't 'RE",
    "<start_of_text> a cat <end_of_text>",
    "<START_OF_TEXT>",
    "a cat &amp; a dog &lt;b&gt; &",
    "café naïve ﬁne “quoted” – it’s ＦＵＬＬ",
    "Kelvin \u212a long \u017f 'ſ",
    "日本語のテキスト 🐈‍⬛ 12½",
    "tab\there\nnew\r\nline\x00\x1b[31mred",
    '0123456789 1,000.00 #@!$%^*()_+-=[]{}|;:,.?/~`"\\',
    "word" * 40,
    "one two three " * 200,
    "x" * 300,
    "schÃ¶n mojibake â€™",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_gets_open_clips_ids(text: str):
    np.testing.assert_array_equal(WORDS([text]), OPEN_CLIP([text]).numpy())


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.text(st.characters(codec="ascii"), max_size=60))
@example("it'S'")
def test_any_text_gets_open_clips_ids(text: str):
    np.testing.assert_array_equal(WORDS([text]), OPEN_CLIP([text]).numpy())


def test_coco_captions_get_open_clips_ids(shared_data):
    file = shared_data / "coco_real" / "annotations" / "captions_val2017.json"
    captions = [row["caption"] for row in json.loads(file.read_text())["annotations"]]
    np.testing.assert_array_equal(WORDS(captions), OPEN_CLIP(captions).numpy())


@pytest.mark.parametrize(
    "tokenizer",
    [
        SimpleTokenizer(clean="whitespace"),
        SimpleTokenizer(additional_special_tokens=["<cat>"]),
        SimpleTokenizer(reduction_mask="simple"),
    ],
    ids=["case kept", "more special tokens", "words left out"],
)
def test_another_tokenizer_is_asked_itself(tokenizer):
    texts = ["A Red CAT on a <cat>", "x"]
    assert not isinstance(quick(tokenizer), Words)
    np.testing.assert_array_equal(quick(tokenizer)(texts), tokenizer(texts).numpy())


def test_the_memory_has_an_end(monkeypatch):
    monkeypatch.setattr(open_clip_words, "WORDS", 3)
    words = Words(OPEN_CLIP)
    texts = ["one two three four five six", "six five four three two one"]
    np.testing.assert_array_equal(words(texts), OPEN_CLIP(texts).numpy())
    assert len(words._ids_of_word) <= 3
