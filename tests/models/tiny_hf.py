"""Tiny randomly initialized checkpoints of every architecture, with tokenizers, written by save_pretrained."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.models.conftest import pictures as pictures

transformers = pytest.importorskip("transformers", reason="needs requirements-models.txt")
import tokenizers  # noqa: E402
import torch  # noqa: E402

SENTENCES = [
    "a photo of two red cats on a boat",
    "A man rides a horse in the rain.",
    "the dog sits on a blue bench next to a tree",
    "is this picture one two three yes no caption left right answer",
]
TEXTS = [
    "a cat",
    "Two red cats on a very small boat next to a tree.",
    "",
    "one two three " * 60,
    "A man rides a horse.",
]
WIDTH = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
VISION = WIDTH | {"image_size": 32, "patch_size": 8}
SIZE = {"height": 32, "width": 32}
CROP = {"size": {"shortest_edge": 32}, "crop_size": SIZE}


def pairs(model, images: list[Image.Image], texts: list[str]) -> tuple[list, np.ndarray]:
    """Return pictures and texts in the form that the `match` method of a model takes."""
    seen = model.encode_pictures([model.preprocess(image) for image in images])
    return seen, model.tokenize(texts)


def words() -> list[str]:
    """Return every word of the sentences, and the letters and punctuation into which other texts are split."""
    vocabulary = dict.fromkeys(" ".join(SENTENCES).lower().replace(".", " .").split())
    return [*vocabulary, *"abcdefghijklmnopqrstuvwxyz0123456789.,?!'\"-—;:"]


def bert(model: str = "BertTokenizer", **extra):
    """Return a lower-casing WordPiece tokenizer, as in ALIGN, FLAVA, BLIP and ViLT."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    pieces = list(dict.fromkeys([*special, *words(), *letters]))
    return getattr(transformers, model)(
        vocab={piece: row for row, piece in enumerate(pieces)}, **extra
    )


def byte_pairs():
    """Return CLIP's tokenizer without merges: one token per byte."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = [
        *alphabet,
        *(f"{letter}</w>" for letter in alphabet),
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    return transformers.CLIPTokenizer(
        vocab={piece: row for row, piece in enumerate(pieces)}, merges=[]
    )


def roberta():
    """Return RoBERTa's tokenizer without merges, as in BridgeTower: one token per byte."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *alphabet, "<mask>"]
    return transformers.RobertaTokenizer(
        vocab={piece: row for row, piece in enumerate(pieces)}, merges=[]
    )


def unigrams():
    """Return XLM-R's tokenizer, as in AltCLIP."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{word}" for word in words()), *words()]
    vocabulary = [(piece, -float(row)) for row, piece in enumerate(dict.fromkeys(pieces))] + [
        ("<mask>", 0.0)
    ]
    return transformers.XLMRobertaTokenizer(vocab=vocabulary)


def gemma():
    """Return SigLIP 2's tokenizer, which keeps case."""
    pieces = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        "<mask>",
        "▁",
        *(chr(code) for code in range(33, 127)),
        "—",
    ]
    made = transformers.GemmaTokenizer(
        vocab={piece: row for row, piece in enumerate(pieces)}, merges=[]
    )
    made.add_bos_token, made.add_eos_token = False, True
    return made


def sentence_pieces(folder: Path):
    """Train and return SigLIP's tokenizer."""
    spm = pytest.importorskip("sentencepiece", reason="needs requirements-models.txt")
    made = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([sentence.lower() for sentence in SENTENCES] * 20),
        model_writer=made,
        vocab_size=60,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(made.getvalue())
    return transformers.SiglipTokenizer(str(folder / "spiece.model"))


def random_weights(architecture: type, config, seed: int = 0):
    """Return a model with random weights that are large enough for the inputs to change the outputs."""
    torch.manual_seed(seed)
    model = architecture(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def built(name: str, suffix: str = "Model", **settings):
    """Return a transformers model with random weights and a config with these settings."""
    config = getattr(transformers, f"{name}Config")(**settings)
    return random_weights(getattr(transformers, f"{name}{suffix}"), config)


def flava(suffix: str, text: dict):
    """Return a tiny FLAVA."""
    return built(
        "Flava",
        suffix,
        image_config=VISION | {"vocab_size": 8},
        text_config=text,
        multimodal_config=WIDTH,
        image_codebook_config={"hidden_size": 4, "vocab_size": 8},
        hidden_size=16,
        projection_dim=12,
    )


def dual(kind: str, folder: Path):
    """Write a tiny dual encoder of this type and return the model."""
    text = WIDTH | {"vocab_size": 600, "max_position_embeddings": 90}
    short = text | {"max_position_embeddings": 64}
    projected = {"vision_config": VISION, "projection_dim": 12}
    if kind == "clip":
        tokenizer, image = byte_pairs(), transformers.CLIPImageProcessorPil(**CROP)
        text |= {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
        model = built("CLIP", text_config=text, **projected)
    elif kind in ("siglip", "siglip2-fixed"):
        tokenizer = gemma() if kind == "siglip2-fixed" else sentence_pieces(folder)
        image = transformers.SiglipImageProcessorPil(size=SIZE)
        model = built("Siglip", text_config=short, vision_config=VISION)
    elif kind == "siglip2":
        tokenizer = gemma()
        image = transformers.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16)
        vision = WIDTH | {"patch_size": 8, "num_patches": 16}
        model = built("Siglip2", text_config=short, vision_config=vision)
    elif kind == "align":
        tokenizer = bert()
        image = transformers.EfficientNetImageProcessorPil(size=SIZE, do_center_crop=False)
        shares = dict.fromkeys(("width_coefficient", "depth_coefficient"), 0.25)
        vision = {"image_size": 32, "hidden_dim": 16} | shares
        model = built("Align", text_config=text, vision_config=vision, projection_dim=80)
    elif kind == "altclip":
        tokenizer, image = unigrams(), transformers.CLIPImageProcessorPil(**CROP)
        text |= {"pad_token_id": 1, "project_dim": 12}
        model = built("AltCLIP", text_config=text, **projected)
    elif kind == "flava":
        tokenizer, image = bert(), transformers.FlavaImageProcessorPil(size=SIZE, crop_size=SIZE)
        model = flava("Model", text)
    elif kind == "metaclip_2":
        tokenizer, image = unigrams(), transformers.CLIPImageProcessorPil(**CROP)
        text |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
        model = built("MetaClip2", text_config=text, **projected)
    else:
        tokenizer, image = bert(), transformers.ChineseCLIPImageProcessorPil(**CROP)
        model = built("ChineseCLIP", text_config=text, **projected)
    for part in (model, tokenizer, image):
        part.save_pretrained(folder)
    return model


def matching(kind: str, folder: Path):
    """Write a tiny image-text matching model of this type and return it."""
    tokenizer = bert(do_lower_case=True)
    text = WIDTH | {"vocab_size": 132}
    if kind == "blip":
        text |= {"bos_token_id": 130, "max_position_embeddings": 60, "encoder_hidden_size": 16}
        sides = {"text_config": text, "vision_config": VISION}
        model = built("Blip", "ForImageTextRetrieval", image_text_hidden_size=12, **sides)
        image = transformers.BlipImageProcessorPil(size=SIZE)
    elif kind == "blip-2":
        model = built(
            "Blip2",
            "ForImageTextRetrieval",
            vision_config=VISION,
            qformer_config=text | {"encoder_hidden_size": 16, "use_qformer_text_input": True},
            num_query_tokens=3,
            image_text_hidden_size=12,
        )
        image = transformers.BlipImageProcessorPil(size=SIZE)
    elif kind == "flava":
        model = flava("ForPreTraining", text | {"max_position_embeddings": 90})
        image = transformers.FlavaImageProcessorPil(size=SIZE, crop_size=SIZE)
    elif kind in ("bridgetower", "bridgetower-itc"):
        tokenizer = roberta()
        ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
        text |= ids | {"vocab_size": 300, "max_position_embeddings": 90}
        heads = {"bridgetower": "ImageAndTextRetrieval", "bridgetower-itc": "ContrastiveLearning"}
        model = built(
            "BridgeTower",
            f"For{heads[kind]}",
            text_config=text | {"num_hidden_layers": 3, "hidden_size": 64},
            vision_config=VISION
            | {"num_hidden_layers": 3, "hidden_size": 64},  # attention heads of size 64
            contrastive_hidden_size=12,
            logit_scale_init_value=2.6,
            **WIDTH | {"hidden_size": 64},
        )
        image = transformers.BridgeTowerImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"shortest_edge": 32}, size_divisor=8
        )
    else:
        sizes = VISION | {"vocab_size": 132, "max_position_embeddings": 40}
        model = built("Vilt", "ForImageAndTextRetrieval", **sizes)
        image = transformers.ViltImageProcessorPil(size={"shortest_edge": 32}, size_divisor=8)
    assert len(tokenizer) <= 130 or kind.startswith("bridgetower"), len(tokenizer)
    for part in (model, tokenizer, image):
        part.save_pretrained(folder)
    return model


CHAT = (
    "{% for m in messages %}USER: {% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %} {% endfor %}ASSISTANT:"
)


def letters(special: list[str]):
    """Return a tokenizer of single bytes with additional special tokens."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<pad>", "<s>", "</s>", *alphabet]
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE({piece: row for row, piece in enumerate(pieces)}, [])
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    return tokenizer


def generative(kind: str, folder: Path, chat: str | None = CHAT):
    """Write a tiny generative model of this type and return it."""
    text = WIDTH | {"num_key_value_heads": 2, "max_position_embeddings": 2048, "vocab_size": 280}
    if kind == "llava":
        tokenizer = letters(["<image>"])
        image = transformers.CLIPImageProcessorPil(**CROP)
        made = transformers.LlavaConfig(
            vision_config=transformers.CLIPVisionConfig(**VISION),
            text_config=transformers.LlamaConfig(**text),
            image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        )
        model = random_weights(transformers.LlavaForConditionalGeneration, made)
        processor = transformers.LlavaProcessor(
            image,
            tokenizer,
            patch_size=8,
            vision_feature_select_strategy="default",
            num_additional_image_tokens=1,
            chat_template=chat and chat.replace("IMAGE", "<image>"),
        )
    elif kind == "idefics3":
        tokenizer = letters(
            ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
        )
        size = {"longest_edge": 32}
        image = transformers.Idefics3ImageProcessorPil(
            size=size, max_image_size=size, do_image_splitting=False
        )
        made = transformers.Idefics3Config(
            vision_config=VISION,
            text_config=transformers.LlamaConfig(**text),
            image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
            scale_factor=2,
            pad_token_id=0,
        )
        model = random_weights(transformers.Idefics3ForConditionalGeneration, made)
        chat = chat and chat.replace("IMAGE", "<image>")
        processor = transformers.Idefics3Processor(
            image, tokenizer, image_seq_len=4, chat_template=chat
        )
    else:
        special = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
        tokenizer = letters(special)
        start, end, pad, video = (tokenizer.convert_tokens_to_ids(one) for one in special)
        rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
        vision = {
            "depth": 2,
            "embed_dim": 16,
            "hidden_size": 16,
            "num_heads": 2,
            "patch_size": 8,
            "mlp_ratio": 2,
        }
        made = transformers.Qwen2VLConfig(
            text_config=text | {"rope_parameters": rope},
            vision_config=vision | {"spatial_merge_size": 2, "temporal_patch_size": 2},
            **{"vision_start_token_id": start, "vision_end_token_id": end},
            **{"image_token_id": pad, "video_token_id": video},
        )
        model = random_weights(transformers.Qwen2VLForConditionalGeneration, made)
        size = {"shortest_edge": 256, "longest_edge": 4096}
        processor = transformers.Qwen2VLProcessor(
            transformers.Qwen2VLImageProcessorPil(patch_size=8, size=size),
            tokenizer,
            transformers.Qwen2VLVideoProcessor(patch_size=8),
            chat_template=chat
            and chat.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
        )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model
