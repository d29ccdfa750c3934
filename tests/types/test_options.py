"""Options are data: what each allows, what it refuses in one line, and that every probe describes all of its own."""

import json
import re

import pytest

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.settings import SETTINGS
from vlprobe.types import Run
from vlprobe.types.options import Option, parse_options

PROBES = registry.names("probes")
ROCOCO = {option.name: option for option in registry.load_probe("rococo").options}


def option_error(option: Option, value: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        option.parse(value)
    assert str(caught.value).startswith(f"Option '{option.name}' ") and "\n" not in str(
        caught.value
    )
    return str(caught.value)


@pytest.mark.parametrize("probe", PROBES)
def test_every_option_has_words_for_people_and_a_default_that_it_allows(probe: str):
    for option in registry.load_probe(probe).options:
        assert option.label and option.help.endswith(".")
        assert option.parse(option.value) == option.value
        assert type(option.parse(option.value)) is type(option.value)
        assert [option.parse([choice]) for choice in option.choices if option.type == "list"] == [
            [choice] for choice in option.choices if option.type == "list"
        ]


def test_every_setting_of_a_run_is_described_and_has_the_default_of_the_request():
    request = Request(("m",), "d", "lgip")
    in_request = {option.name: getattr(request, option.name) for option in SETTINGS}
    # A request has tuples where a job's file has lists
    assert json.dumps({option.name: option.value for option in SETTINGS}) == json.dumps(in_request)
    assert {option.name for option in SETTINGS} == set(vars(request)) - {
        "models",
        "dataset",
        "probe",
        "options",
        "errata",  # digests that a file gives, on the command line only
    }


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("policies", "danger:2", ["danger:2"]),
        ("policies", ["delete:random", "danger-paper"], ["delete:random", "danger-paper"]),
        ("policies", "", []),
        ("pictures", "mix:.85", ["mix:.85"]),
        ("picture_seeds", ["7", 100], [7, 100]),
        ("influence", ["demo:softmax"], ["demo:softmax"]),
        ("normalise", "False", False),
    ],
)
def test_a_value_beyond_the_defaults_is_taken_in_its_own_type(
    name: str, typed: object, value: object
):
    assert ROCOCO[name].parse(typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        (
            "policies",
            "danger:6",
            "'danger:6'. Expected NAME, NAME:K (2 to 5 words) or delete:WHICH",
        ),
        ("policies", ["danger", "delete:all"], "'delete:all'"),
        ("pictures", "mix:1.5", "'mix:1.5'. Expected mix:LAM or patch:LAM, 0 < LAM < 1"),
        ("pictures", "mix:0.0", "0 < LAM < 1"),
        ("picture_seeds", "x", "'x'. Expected whole numbers"),
        ("picture_seeds", "-1", "'-1'. Expected whole numbers"),
        ("picture_seeds", True, "'True'"),
        ("normalise", "maybe", "'maybe'. Expected true or false"),
    ],
)
def test_what_means_nothing_is_refused_with_what_was_expected(
    name: str, typed: object, expected: str
):
    assert expected in option_error(ROCOCO[name], typed)


def test_a_path_with_a_comma_stays_one_text():
    edits = next(option for option in registry.load_probe("lgip").options if option.name == "edits")
    assert edits.parse(["a", "b.jsonl"]) == "a,b.jsonl"


def test_bounds_hold_and_are_told():
    option = Option(name="n", default=3, label="N", help="A number.", minimum=2, maximum=5)
    assert [option.parse(n) for n in (2, "5")] == [2, 5]
    for n in (1, 6):
        assert re.search("Expected a whole number from 2 to 5", option_error(option, n))


def test_an_option_that_no_probe_has_is_named_with_those_that_there_are():
    with pytest.raises(InvalidInput, match=r"Probe 'x' has no option 'b'\. Available options: n\."):
        parse_options(
            [Option(name="n", default=3, label="N", help="A number.")], {"b": 1}, "Probe 'x'"
        )
    with pytest.raises(
        InvalidInput, match=r"Probe 'x' has no option 'b'\. Available options: none\."
    ):
        parse_options([], {"b": 1}, "Probe 'x'")


@pytest.mark.parametrize("probe", ["rococo", "prsm"])
@pytest.mark.parametrize("value", [10, "500", "²", "9" * 40])
def test_a_removed_option_ends_in_one_line_that_says_what_to_do(probe: str, value: object):
    options = registry.load_probe(probe).options
    with pytest.raises(
        InvalidInput, match=r"'approximate' was removed\..* exactly.*Do not set it"
    ) as caught:
        parse_options(options, {"approximate": value}, f"Probe '{probe}'")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ("rococo", ("61828277d753c308", "9906cdd5eba8c0a1")),
        ("prsm", ("328691c8c2700f45", "eb3340bf002ca919")),
    ],
)
def test_an_exact_run_keeps_the_key_that_it_had_while_there_was_an_approximate_search(
    probe: str, expected: tuple[str, str], tmp_path
):
    loaded = registry.load_probe(probe)
    metrics = tuple(f"{metric.name}@1" for metric in loaded.metrics)
    for given in ({}, {"approximate": 0}, {"approximate": "0"}):
        options = loaded.pin(parse_options(loaded.options, given, "Probe"), tmp_path)
        run = Run("m", "d", "data", "dd", loaded.name, 1, metrics, dict(options))
        assert (run.key, run.case_key) == expected
