"""An imported score matrix (every picture with every text) as a model."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import tiers
from tests.models import answered
from tests.models.test_embeddings import run, scored
from tests.models.test_scores import values
from tests.probes.test_common import make
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine


def save_matrix(
    folder: Path, data: str, probe: str, store, **options: object
) -> tuple[str, np.ndarray]:
    """Write the questions and a model's score matrix, and return the model name and the matrix."""
    from tests.models.test_embeddings import OPTIONS

    answered.questions(data, probe, folder, store, **OPTIONS.get(probe, {}))
    images, texts = answered.vectors(folder)
    matrix = images @ texts.T
    np.save(folder / "scores.npy", matrix)
    return f"scores:{folder}+cosine", matrix


@pytest.mark.parametrize("probe", tiers(["lgip", "rococo", "eqben", "prsm"], ("rococo",)))
def test_a_matrix_gives_the_scores_of_the_model_in_every_picture_probe(probe, tmp_path, store):
    data = make(probe, tmp_path / "data", 6)
    name, _ = save_matrix(tmp_path / "out", data, probe, store)
    computed, looked_up = (run(model, data, probe, store) for model in (answered.MODEL, name))
    expected, imported_rows = scored(computed, store), scored(looked_up, store)
    assert len(imported_rows) == len(expected) > 5
    for left, right in zip(imported_rows, expected, strict=True):
        np.testing.assert_allclose(left["scores"], right["scores"], atol=1e-6)
        assert left["margin"] == pytest.approx(right["margin"], abs=1e-5)
        assert np.isnan(left["text_scores"]).all() or not left["text_scores"]
        assert [left.get(key) for key in ("rank", "rank_clean", "top")] == [
            right.get(key) for key in ("rank", "rank_clean", "top")
        ]
    assert looked_up["spread"] == pytest.approx(computed["spread"], rel=1e-4)
    assert "similarities of texts are unknown" in looked_up["note"]
    assert looked_up["score_type"] == "cosine"


def test_metrics_that_need_text_cosines_or_a_scale_are_unknown_for_a_matrix(tmp_path, store):
    data = make("lgip", tmp_path / "data", 6)
    name, _ = save_matrix(tmp_path / "out", data, "lgip", store)
    known, unknown = (
        run(model, data, "lgip", store) for model in (name, name.removesuffix("+cosine"))
    )
    rows = store.run(known["key"]).table("estimates").to_pylist()
    assert not [
        row
        for row in rows
        if row["by"] == "strength_bin" and row["slice"] not in ("", "unknown", None)
    ]
    assert np.isnan(values(store, unknown)["invariance_error"])
    assert values(store, known)["positive_rate"] == values(store, unknown)["positive_rate"]
    assert "the scale is not named" in unknown["note"]


def test_matrix_rows_can_be_in_any_order_and_only_needed_rows_are_read(tmp_path, store):
    data = make("prsm", tmp_path / "data")
    name, matrix = save_matrix(tmp_path / "out", data, "prsm", store)
    ids = [
        np.array([row["id"] for row in answered.rows(tmp_path / "out" / f"{side}.jsonl")])
        for side in ("pictures", "texts")
    ]
    file = tmp_path / "s.npz"
    np.savez(file, scores=matrix[::-1, ::-1], picture_ids=ids[0][::-1], text_ids=ids[1][::-1])
    wide = np.pad(matrix.astype(np.float64), ((1, 1), (2, 2)), constant_values=np.nan)
    more = [np.concatenate([["a"] * (n > 0), side, ["z"] * (n > 0)]) for n, side in enumerate(ids)]
    padded = tmp_path / "w.npz"
    np.savez(padded, sim=wide[1:-1, 1:-1], picture_ids=more[0], text_ids=more[1])
    np.save(tmp_path / "place.npy", np.asfortranarray(matrix))
    names = [
        f"scores:{file}+matrix",
        f"scores:{padded}+matrix+score=sim",
        f"scores:{tmp_path}/place.npy+matrix",
    ]
    expected = [row["top"] for row in scored(run(name, data, "prsm", store), store)]
    for form in names:
        assert [row["top"] for row in scored(run(form, data, "prsm", store), store)] == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("+matrix", "Expected 'scores'; 'picture_ids' and 'text_ids' are optional."),
        ("+cosine", "Expected 'scores'; 'ids' is optional."),
        ("+cosine+key=names", "Expected 'scores' and 'names'."),
    ],
)
def test_an_archive_without_scores_is_refused_with_its_required_and_optional_arrays(
    tmp_path: Path, options: str, expected: str
):
    np.savez(tmp_path / "s.npz", sims=np.zeros((2, 2)))
    with pytest.raises(InvalidInput) as refused:
        registry.load_model(f"scores:{tmp_path}/s.npz{options}")
    assert expected in str(refused.value) and "contains sims." in str(refused.value)


def test_missing_scores_are_counted_and_refused_or_unknown_with_an_option(tmp_path, store):
    data = make("lgip", tmp_path / "data")
    name, matrix = save_matrix(tmp_path / "out", data, "lgip", store)
    matrix[0, 2:] = np.nan
    np.save(tmp_path / "out" / "scores.npy", matrix)
    with pytest.raises(
        InvalidInput, match=r"lacks \d+ of [\d,]+ scores .*first: row 0, column 2\).*\+partial"
    ):
        run(name, data, "lgip", store)
    manifest = run(f"{name}+partial", data, "lgip", store)
    assert "scores are missing: cases that need them are unknown" in manifest["note"]
    margins = [row["margin"] for row in scored(manifest, store)]
    assert 0 < np.isnan(margins).sum() < len(margins)
    name, matrix = save_matrix(tmp_path / "gallery", data, "prsm", store)
    matrix[1, 1] = np.nan
    np.save(tmp_path / "gallery" / "scores.npy", matrix)
    with pytest.raises(InvalidInput, match=r"lacks 1 of .* A search needs all scores"):
        run(f"{name}+partial", data, "prsm", store)


def test_a_matrix_is_refused_if_all_cases_compare_only_texts(tmp_path, store):
    data = make("visla", tmp_path / "data", 6)
    answered.questions(data, "visla", tmp_path / "texts", store)
    n_texts = len(answered.rows(tmp_path / "texts" / "texts.jsonl"))
    n_pictures = len(answered.rows(tmp_path / "texts" / "pictures.jsonl"))
    np.save(tmp_path / "texts" / "scores.npy", np.zeros((n_pictures, n_texts)))
    assert np.isnan(
        values(store, run(f"scores:{tmp_path}/texts", data, "visla", store))["t2t_accuracy"]
    )
    plain = data.partition("@")[0]
    np.save(tmp_path / "texts" / "scores.npy", np.zeros((0, n_texts)))
    (tmp_path / "texts" / "pictures.jsonl").unlink()
    (tmp_path / "texts" / "pictures.parquet").unlink()
    with pytest.raises(InvalidInput, match="All cases compare only texts"):
        run(f"scores:{tmp_path}/texts", plain, "visla", store)


def test_doctor_runs_the_checks_that_apply_to_a_matrix(tmp_path, store):
    data = make("prsm", tmp_path / "data")
    name, _ = save_matrix(tmp_path / "out", data, "prsm", store)
    model = registry.load_model(name)
    examination = examine.examine(model, registry.load_dataset(data, store.root), store.root)
    outcomes = {check.name: check.passed for check in examination.checks}
    assert outcomes["finite"] is True and outcomes["text_batch"] is None
    assert outcomes["r1_forth"] is not None
    assert examination.passport["embedding"] == "none: scores from a file"


def test_the_error_for_case_scores_in_a_gallery_states_the_number_of_pairs(tmp_path, store):
    data = make("prsm", tmp_path / "data")
    (tmp_path / "s.jsonl").write_text('{"label": "a_c0_i0", "score": 0.5}\n')
    with pytest.raises(InvalidInput, match=r"\(6 pictures x 12 captions = 72 pairs, .*\+matrix"):
        run(f"scores:{tmp_path}/s.jsonl", data, "prsm", store)
