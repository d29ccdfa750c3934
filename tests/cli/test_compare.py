"""Comparisons on the command line: findings and differences, gates, names, and removal."""

import io
import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from huggingface_hub.repocard_data import model_index_to_eval_results

from tests.cli.test_main import frame_of, rows_of
from tests.conftest import call, store_again
from vlprobe import registry, views
from vlprobe.cli import output
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.render.findings import verdict
from vlprobe.render.text_tables import latex_lines, markdown_lines, text_lines
from vlprobe.render.words import presentations
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.views.gate import Promise


@pytest.fixture
def cache(compared, tmp_path):
    """Return a cache with LGIP answers of control:random and of guess, which has shuffled answers."""
    return shutil.copytree(compared.root, tmp_path / "cache")


def keys(cache) -> dict[str, str]:
    return {manifest["run"]["model"]: manifest["key"] for manifest in Store(cache).runs()}


def differences(cache, metric: str) -> np.ndarray:
    """Return the mean by item of guess minus control:random, from the files without vlprobe's views."""
    sides = []
    for model in ("control:random", "guess"):
        table = Store(cache).run(keys(cache)[model]).table("sums").to_pandas()
        table = table[(table["metric"] == metric) & (table["averaging"] == "macro")]
        sides.append((table.groupby("item_code")["total"].sum(), table["weight"].sum()))
    (base, base_weight), (value, weight) = sides
    return value.sum() / weight - base.sum() / base_weight


def test_compare_prints_the_finding_of_the_page_and_the_paired_differences(cache):
    names = ["control:random", "guess"]
    answer = call(cache, "compare", *names, "--format", "csv")
    table = pd.read_csv(io.StringIO(answer.stdout)).set_index("metric")
    assert table.loc["positive_rate", "difference"] == pytest.approx(
        differences(cache, "positive_rate"), abs=1e-6
    )
    store = Store(cache)
    question_set = views.runs.select(store, names)
    comparison = views.paired_tests.compare_models(question_set, tuple(names), "flip")
    finding = verdict(comparison, presentations()["lgip"].kind("flip"))
    words = call(cache, "compare", *names, "--kind", "flip", "--probe", "lgip")
    assert words.stdout.splitlines()[:2] == [finding.heading, finding.detail]
    assert answer.stderr.splitlines()  # with a table for machines


@pytest.mark.parametrize(
    "options",
    [
        ("--by", "edit"),
        ("--averaging", "micro"),
        ("--unit", "spread"),
        ("--kind", "paraphrase"),
        ("--format", "markdown"),
        ("--format", "latex"),
        ("--format", "json"),
    ],
)
def test_every_option_of_compare_has_a_table(cache, options):
    assert call(cache, "compare", "guess", "control:random", *options).stdout


@pytest.mark.parametrize("how", ["table", "markdown", "csv"])
def test_a_p_value_that_rounds_to_zero_is_below_a_thousandth(how, capsys):
    table = pd.DataFrame(
        {"metric": ["a", "b"], "p": [0.0, 0.25], "p_holm": [1e-9, 0.5], "low": 0.0}
    )
    output.print_table(table, how)
    text = capsys.readouterr().out
    if how == "csv":
        assert pd.read_csv(io.StringIO(text))["p_holm"].tolist() == [1e-9, 0.5]
        return
    first = next(line for line in text.splitlines() if re.search(r"\ba\b", line))
    assert re.findall(r"[&lt;<]*[\d.]+", first)[-3:] == ["<.001", "<.001", "0.0000"]
    assert "0.2500" in text and "0.5000" in text


def test_compare_by_edit_has_the_rows_of_the_page(cache):
    words = ("compare", "control:random", "guess", "--kind", "flip", "--by", "edit")
    table = frame_of(cache, *words).set_index("subtype")
    scores = {
        model: Store(cache).run(key).table("scores").to_pandas().query("kind == 'flip'")
        for model, key in keys(cache).items()
    }
    believed = {model: float((rows["margin"] <= 0).mean()) for model, rows in scores.items()}
    assert table.loc["all", "base"] == pytest.approx(believed["control:random"])
    assert table.loc["all", "value"] == pytest.approx(believed["guess"])
    n_cases = {model: len(rows) for model, rows in scores.items()}
    assert set(table.loc[["all"], "n_cases"]) == set(n_cases.values()) and "n_lies" not in table
    assert set(table["baseline"]) == {"control:random"}


@pytest.mark.parametrize("how", ["markdown", "latex"])
def test_compare_by_edit_for_a_paper_has_the_values_of_csv_in_words_and_a_note(cache, how):
    command = ("compare", "control:random", "guess", "--kind", "flip", "--by", "edit", "--format")
    exact = pd.read_csv(io.StringIO(call(cache, *command, "csv").stdout))
    text = call(cache, *command, how).stdout
    percent, gap = {"markdown": (" %", "|"), "latex": (r" \%", "&")}[how]
    rows = [line for line in text.splitlines() if line.count(gap) > 5 and percent in line]
    assert len(rows) == len(exact)
    for row, (value, base) in zip(rows, exact[["value", "base"]].to_numpy(), strict=True):
        assert f"{100 * value:.1f}{percent}" in row and f"{100 * base:.1f}{percent}" in row
    assert "Differences from" in text and "McNemar" in text and "Holm-adjusted" in text
    assert "averaging" not in text


def test_runs_are_found_by_prefixes_of_keys_and_labeled_if_they_share_a_model(
    cache,
):
    store = Store(cache)
    first = next(manifest for manifest in store.runs() if manifest["run"]["model"] == "guess")
    store_again(store, first, "e" * 16, model="guess")
    answer = call(cache, "compare", first["key"][:8], "eeeeee", "--format", "json")
    rows = json.loads(answer.stdout)
    assert {(row["baseline"], row["model"]) for row in rows} == {
        ("guess (ffffffff)", "guess (eeeeeeee)")
    }
    assert {row["difference"] for row in rows} <= {0.0, None}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("guess",), "A comparison needs two runs"),
        (("guess", "guess"), "A comparison needs two runs"),
        (("guess", "nobody"), "No stored run or model named 'nobody'"),
        (tuple("abcdefghi"), "Too many runs to compare"),
        (
            ("guess", "control:random", "--kind", "x"),
            "No kind of lgip case in this question set named 'x'",
        ),
        (("guess", "control:random", "--probe", "prsm"), "did not answer the same questions"),
    ],
)
def test_runs_that_cannot_be_compared_give_one_line(cache, words, line):
    answer = call(cache, "compare", *words, code=1)
    assert line in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not answer.stdout


def test_runs_over_different_questions_are_not_compared(cache, tiny):
    before = keys(cache)
    words = ("run", "--model", "control:random", "--dataset", tiny, "--option", "k_same=1")
    call(cache, *words, "--no-doctor")
    (key,) = {manifest["key"] for manifest in Store(cache).runs()} - set(before.values())
    answer = call(cache, "compare", before["guess"], key, code=1)
    assert "answered different questions" in answer.stderr


def gate(cache, *promises: str, code: int, options: tuple[str, ...] = ()):
    words = [word for promise in promises for word in ("--max-drop", promise)]
    return call(cache, "gate", "guess", "--against", "control:random", *words, *options, code=code)


def test_a_gate_is_open_only_if_the_interval_overlaps_the_allowed_range(cache):
    row = rows_of(cache, "compare", "control:random", "guess")
    low, high = next(
        (-each["high"], -each["low"]) for each in row if each["metric"] == "positive_rate"
    )
    base = next(each for each in row if each["metric"] == "invariance_error")
    assert high > max(low, 0)  # of the drop of a metric that is better if higher
    allowed = max(low, 0) + 1e-6
    assert "open" in gate(cache, f"positive_rate={allowed}", code=0).stderr
    strict = gate(cache, f"positive_rate={allowed}", code=1, options=("--strict",))
    assert strict.stdout.count("\n") == 1 and "allowed" in strict.stdout
    assert (
        "kept" in gate(cache, f"positive_rate={high + 1e-6}", code=0, options=("--strict",)).stderr
    )
    assert "kept" in gate(cache, f"invariance_error={abs(base['high']) + 1}", code=0).stderr


def test_a_gate_fails_for_a_clearly_worse_model_with_one_line_per_limit(cache):
    store = Store(cache)
    manifest = next(m for m in store.runs() if m["run"]["model"] == "guess")
    sums = store.run(manifest["key"]).table("sums")
    worse = {"positive_rate": 0.0, "invariance_error": 3.0}  # in every item
    totals = [
        weight * worse[metric] if metric in worse else total
        for metric, weight, total in zip(
            sums["metric"].to_pylist(),
            sums["weight"].to_pylist(),
            sums["total"].to_pylist(),
            strict=True,
        )
    ]
    import pyarrow as pa

    place = sums.column_names.index("total")
    changed = sums.set_column(
        place, sums.schema.field("total"), pa.array(totals, sums.schema.field("total").type)
    )
    store_again(store, manifest, "d" * 16, {"sums": changed}, model="worse")
    limits = ["--max-drop", "positive_rate=0.05", "--max-drop", "invariance_error=0.5"]
    limits += ["--max-drop", "sensitivity_gap=1"]
    words = ["gate", "worse", "--against", "control:random", *limits]
    answer = call(cache, *words, code=1)
    lines = answer.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["positive_rate", "invariance_error"]
    assert all("broken" in line for line in lines)
    assert "sensitivity_gap: kept" in answer.stderr
    rows = rows_of(cache, *words, "--averaging", "macro", code=1)
    assert [row["is_broken"] for row in rows] == [True, True, False]
    assert call(cache, "gate", "control:random", "--against", "worse", *limits).exit_code == 0


@pytest.mark.parametrize(
    ("promise", "line"),
    [
        ("positive_rate", "is not a valid limit"),
        ("positive_rate=much", "is not a valid limit"),
        ("positive_rate=-1", "is not a valid limit"),
        ("positive_rate=nan", "is not a valid limit"),
        ("group_score=0", "No probe has all|did not answer"),
        ("nothing=1", "No metric named 'nothing'"),
        ("erased_share=1", "neither higher nor lower values are better"),
    ],
)
def test_an_invalid_limit_is_refused(cache, promise, line):

    answer = gate(cache, promise, code=2)
    assert re.search(line, answer.stderr), answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_gate_on_an_unknown_run_is_a_usage_error_and_not_a_regression(cache):
    words = ("gate", "guess", "--against", "nosuch", "--max-drop", "positive_rate=1")
    assert "No stored run or model named 'nosuch'" in call(cache, *words, code=2).stderr


@pytest.mark.parametrize("probe", registry.names("probes"))
def test_the_options_of_a_probe_are_listed_with_their_defaults(tmp_path, probe):
    rows = rows_of(tmp_path, "options", probe)
    assert [row["option"] for row in rows] == [
        option.name for option in registry.load_probe(probe).options
    ]
    assert all(row["meaning"] for row in rows)


def test_a_question_set_is_removed_with_its_last_run(cache):
    of_model = keys(cache)
    case_key = Store(cache).runs()[0]["case_key"]
    stopped = call(cache, "remove", of_model["guess"][:6], code=1)
    assert "Aborted" in stopped.output and len(keys(cache)) == 2
    call(cache, "remove", of_model["guess"][:6], "--yes")
    assert list(keys(cache)) == ["control:random"]
    assert (cache / "cases" / case_key / "manifest.json").exists()
    refused = call(cache, "remove", of_model["control:random"], "nothing", "--yes", code=1)
    assert "No stored run named 'nothing'" in refused.stderr
    assert list(keys(cache)) == ["control:random"]  # all or none are removed
    call(cache, "remove", of_model["control:random"], "--yes")
    assert not (cache / "cases" / case_key / "manifest.json").exists()
    assert call(cache, "verify").stderr.splitlines()[-1] == "All checksums match."


def test_a_read_only_cache_refuses_to_remove_or_rename(cache, monkeypatch):
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    for words in (("remove", keys(cache)["guess"], "--yes"), ("rename", "guess", "Ours")):
        assert "read-only" in call(cache, *words, code=1).stderr
    assert len(keys(cache)) == 2


def test_a_display_name_is_used_in_sentences(cache):
    call(cache, "rename", keys(cache)["guess"][:8], "Our  model")
    assert display_names.read(Store(cache)) == {"guess": "Our model"}
    answer = call(cache, "compare", "guess", "control:random")
    assert "Our model" in " ".join(answer.stdout.splitlines()[:2])
    call(cache, "rename", "guess", "")
    assert not display_names.read(Store(cache))
    assert "No stored model or dataset named 'x'" in call(cache, "rename", "x", "y", code=1).stderr


def test_shells_complete_keys_models_and_probes(cache, tmp_path):
    for shell in ("bash", "zsh", "fish"):
        assert "_VLPROBE_COMPLETE" in call(tmp_path, "completion", shell).stdout
    from click.shell_completion import get_completion_class

    from vlprobe.cli.main import main

    completion = get_completion_class("bash")(main, {}, "vlprobe", "_VLPROBE_COMPLETE")
    words = ["--cache", str(cache)]
    values = [item.value for item in completion.get_completions([*words, "compare"], "gu")]
    assert values == ["guess"]
    values = [item.value for item in completion.get_completions([*words, "show"], "ff")]
    assert values == ["f" * 16]
    values = [item.value for item in completion.get_completions([*words, "run", "--probe"], "pr")]
    assert values == ["prsm"]
    values = [item.value for item in completion.get_completions(["--cache", "s3:///", "show"], "")]
    assert values == []  # without a traceback


@pytest.mark.parametrize("columns", [60, 110])
def test_a_table_fits_the_terminal(cache, monkeypatch, columns):
    monkeypatch.setattr(output, "terminal_width", lambda: columns)
    for words in (
        ("show",),
        ("compare", "guess", "control:random"),
        ("list", "metrics"),
        ("options", "rococo"),
    ):
        answer = call(cache, *words)
        table = [line for line in answer.stdout.splitlines() if "  " in line]
        assert max(map(len, table)) <= columns
    key = next(line for line in call(cache, "show").stdout.splitlines() if "guess" in line).split()[
        0
    ]
    assert Store(cache).find(key)["run"]["model"] == "guess"  # the shown part is enough


def test_metrics_without_a_value_in_any_row_are_listed_in_csv_and_json_only(capsys, tmp_path):
    nan = float("nan")
    table = pd.DataFrame(
        {
            "metric": ["a", "a", "b", "b", "c"],
            "model": ["m", "n", "m", "n", "m"],
            "value": [0.5, nan, nan, nan, nan],
            "base": [nan, nan, nan, nan, 0.25],
        }
    )
    question_set = SimpleNamespace(runs=(), store=Store(tmp_path))
    for how in ("table", "markdown", "latex"):
        output.print_metrics(table, how, question_set)
        printed = capsys.readouterr()
        assert "1 of 3 metrics has no value" in printed.err
        lines = [line for line in printed.out.splitlines() if "---" not in line]
        lines = [line for line in lines if how != "latex" or "&" in line]
        firsts = [line.strip("| ").removeprefix(r"\addlinespace ").split()[0] for line in lines]
        assert firsts == ["metric", "a", "&" if how == "latex" else "a", "c"]
    output.print_metrics(table, "csv", question_set)
    assert len(capsys.readouterr().out.splitlines()) == 6
    output.print_metrics(table.assign(value=nan, base=nan), "table", question_set)
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_a_note_explains_rows_without_an_interval(capsys):
    table = pd.DataFrame({"value": [0.5, 0.4], "low": [np.nan, 0.3], "n_items": [4, 9]})
    for how, printed in (("table", True), ("csv", False)):
        output.print_table(table, how)
        assert ("are based on fewer than 5 pictures" in capsys.readouterr().err) == printed
    output.print_table(table.iloc[1:], "table")
    assert not capsys.readouterr().err


def test_a_limit_on_too_few_pictures_is_unknown_with_a_reason():
    few = Promise("positive_rate", 0.1, 0.9, 0.8, 0.1, np.nan, np.nan, 4, False)
    assert few.outcome == "unknown" and few.is_broken
    assert "unknown on fewer than 5 pictures" in few.sentence


def test_numbers_are_right_aligned_and_unknown_ones_are_a_dash():
    table = pd.DataFrame({"name": ["a", "bcd"], "n": [1, 1000], "share": [0.5, float("nan")]})
    lines, cut = text_lines(table, None)
    assert lines == ["name     n   share", "a        1  0.5000", "bcd   1000       -"]
    assert not cut


def test_text_is_escaped_in_markdown():
    table = pd.DataFrame({"a_b": ["x|y\n<script>", "**b**"], "n": [1.0, 2.0]})
    head, rule, *rows = markdown_lines(table)
    assert (head, rule) == ("| a_b | n |", "| --- | ---: |")
    assert rows[0] == r"| x\|y &lt;script&gt; | 1.0000 |"
    assert rows[1] == r"| \*\*b\*\* | 2.0000 |"


def test_show_groups_tied_models_for_papers(dealt_store):
    run, key = next((manifest["key"], manifest["case_key"]) for manifest in dealt_store.runs())
    question_set = views.runs.question_set(dealt_store, key)
    groups = views.paired_tests.metric_tie_groups(question_set)["positive_rate"]
    letters = group_letters(groups)
    for how, separator in (("markdown", " | "), ("latex", " & ")):
        answer = call(dealt_store.root, "show", run, "--format", how)
        assert "Models that share a letter are" in answer.stdout + answer.stderr
        rows = [line.strip("| ").split(separator) for line in answer.stdout.splitlines()]
        head = next(row for row in rows if row[0] == "model")
        column = head.index("group" if how == "markdown" else "value")
        shown = {  # LaTeX prints the letters as superscripts of the values
            row[0]: row[column].partition("superscript{")[2].rstrip("}")
            if how == "latex"
            else row[column].strip()
            for row in rows
            if len(row) > 2 and {"positive_rate", "Positive rate"} & {row[1], row[2]}
        }
        names = {model: model.partition(":")[2] if how == "latex" else model for model in letters}
        assert {model: shown[name] for model, name in names.items()} == letters
        assert all(not shown[model] for model in shown if model not in names.values())
    assert "group" not in head
    is_clear = sum("a" in each for each in letters.values()) == 1
    (best,) = [row for row in rows if row[:2] == [names[groups[0][0]], "Positive rate"]]
    assert best[column].startswith(r"\textbf{") == is_clear


def test_the_caption_of_a_latex_table_names_the_question_set_and_the_intervals(cache):
    key = keys(cache)["control:random"]
    shown = call(cache, "show", key, "--format", "latex").stdout
    assert "caption{Metrics (micro averages) with 95 \\% intervals of values, resampled" in shown
    assert re.search(r"n = [\d,]+ cases, [\d,]+ items\. Run with vlprobe\.", shown)


def test_the_latex_table_of_a_slice_names_it_and_has_its_number_of_pictures(cache):
    key = keys(cache)["control:random"]
    call(cache, "slice", "save", "few", key, "--kind", "flip", "--contains", "a")
    words = ("compare", "guess", "control:random", "--slice", "few", "--format", "latex")
    text = call(cache, *words).stdout
    assert "Cases of the slice “few” only." in text and "pictures" in text


def test_every_latex_table_of_metrics_has_its_source_and_its_label(cache):
    key, labels = keys(cache)["control:random"], set()
    for words in (
        (),
        ("--by", "size"),
        ("--by", "subtype"),
        ("--by", "subtype", "--unit", "spread"),
    ):
        text = call(cache, "show", key, *words, "--format", "latex").stdout
        assert "Run with vlprobe." in text
        (label,) = re.findall(r"\\label{tab:vlprobe-(show[a-z0-9-]*)}", text)
        labels.add(label)
    assert len(labels) == 4


def test_text_is_escaped_in_latex():
    words = [r"[a] \input{b}", "50 %\n& c_d", "$x^2$ ~ #1"]
    table = pd.DataFrame({"a_b": words, "n": [1.0, -2.0, np.nan]})
    start, *lines = latex_lines(table, caption="50 % of a/b", label="x")
    assert "booktabs" in start and lines[:2] == [r"\begin{table}[tbp]", r"\centering"]
    assert lines[2:4] == [r"\caption{50 \% of a/\allowbreak b}", r"\label{tab:vlprobe-x}"]
    assert lines[5].startswith(r"\begin{adjustbox}{max width=\linewidth, max totalheight=0.8")
    assert lines[6] == r"\begin{tabular}{lr}"
    assert lines[-3:] == [r"\end{tabular}", r"\end{adjustbox}", r"\end{table}"]
    assert lines[7:10] == [r"\toprule", r"a\_b & n \\", r"\midrule"]
    assert lines[10:-4] == [
        r"{[}a] \textbackslash{}input\{b\} & 1.0000 \\",
        r"50 \% \& c\_d & $-$2.0000 \\",
        r"\$x\textasciicircum{}2\$ \textasciitilde{} \#1 & - \\",
    ]


def test_each_part_of_a_latex_table_fits_a_page_even_with_two_lines_per_row():
    table = pd.DataFrame({"model": [f"m{i}" for i in range(45)], "All": ["50 %\v(40 to 60)"] * 45})
    lines = "\n".join(latex_lines(table)).splitlines()
    assert sum("footnotesize" in line for line in lines) == 45
    begins = [line for line in lines if "begin{adjustbox}" in line]
    assert len(begins) == 2 and all(r"max totalheight=0.88\textheight" in line for line in begins)


def test_parts_of_a_latex_table_are_below_each_other_and_keep_rows_of_one_group_together():
    rows = [("All", "m1")] * 30 + [("Object", "m2")] * 15
    lines = latex_lines(pd.DataFrame(rows, columns=["Type", "Model"]))
    first, second = "\n".join(lines).split("\n\n")  # the blank line begins a paragraph
    assert (first.count("& m1"), first.count("Object")) == (30, 0)
    assert second.count("& m2") == 15
    # The title of a group is printed once on a page
    assert (first.count("All &"), second.count("Object &")) == (1, 1)
    short = "\n".join(latex_lines(pd.DataFrame(rows[28:32], columns=["Type", "Model"])))
    assert "All & m1 \\\\\n & m1 \\\\\n\\addlinespace Object & m2 \\\\\n & m2" in short
    for part in (first, second):  # each has its own float
        assert part.count(r"\begin{table}") == part.count(r"\caption{") == 1
    assert r"\label" not in second and r"\ref{tab:vlprobe-table}" in second
    wide = pd.DataFrame({"Model": ["a"], **{f"c{number}": ["1 %"] for number in range(12)}})
    parts = "\n".join(latex_lines(wide, {"c0": ["a"]})).split("\n\n")
    assert [part.count("c") - part.count("c}") >= 4 for part in parts] == [True] * 3
    assert all(part.count("1 \\%") == 4 and part.count("a & ") == 1 for part in parts)


def test_the_hub_s_library_can_read_a_model_index(cache):
    key = keys(cache)["control:random"]
    block = call(cache, "show", key, "--format", "model-index").stdout
    name, results = model_index_to_eval_results(yaml.safe_load(block)["model-index"])
    assert name == "Coin flip"
    shown = rows_of(cache, "show", key)
    expected = {
        row["metric"]: round(row["value"], 4)
        for row in shown
        if row["key"] == key and row["value"] is not None
    }
    assert {result.metric_type: result.metric_value for result in results} == expected
    assert str(cache.parent) not in block  # no local path
    assert "KEY" in call(cache, "show", "--format", "model-index", code=2).stderr


def test_plan_names_the_smallest_difference_and_pictures_for_another(cache):
    names = ["control:random", "guess"]
    rows = rows_of(cache, "plan", *names, "--detect", "0.02", "--tests", "1")
    (row,) = [row for row in rows if row["metric"] == "positive_rate"]
    compared = rows_of(cache, "compare", *names)
    (other,) = [row for row in compared if row["metric"] == "positive_rate"]
    error = (other["high"] - other["low"]) / 3.92
    assert row["error"] == pytest.approx(error, rel=1e-3)
    assert row["n_items"] == other["n_items"]
    assert row["pictures"] >= (2.8 * error / 0.02) ** 2 * row["n_items"] * 0.99
    as_compared = rows_of(cache, "plan", *names)
    (planned,) = [row for row in as_compared if row["metric"] == "positive_rate"]
    assert planned["detectable"] == other["detectable"] and "pictures" not in planned


def test_plan_for_one_run_compares_it_with_others_or_an_independent_one(cache):
    run = keys(cache)["guess"]
    rows = rows_of(cache, "plan", run)
    assert {(row["baseline"], row["model"]) for row in rows} == {("guess", "control:random")}
    call(cache, "remove", keys(cache)["control:random"], "--yes")
    rows = rows_of(cache, "plan", run, "--averaging", "macro")
    (row,) = [row for row in rows if row["metric"] == "positive_rate"]
    shown = rows_of(cache, "show", run, "--averaging", "macro")
    (value,) = [row for row in shown if row["metric"] == "positive_rate"]
    assert row["baseline"] == ""
    assert row["error"] == pytest.approx((value["high"] - value["low"]) / 3.92 * 2**0.5, rel=1e-3)
    assert "pass the key of a run" in call(cache, "plan", run, "--probe", "lgip", code=2).stderr
    assert "--detect" in call(cache, "plan", run, "--detect", "0", code=2).stderr
