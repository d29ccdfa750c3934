"""Options accept valid values and refuse others in one line, and every probe describes all its options."""

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
def test_every_option_has_a_label_a_help_text_and_a_valid_default(probe: str):
    for option in registry.load_probe(probe).options:
        assert option.label and option.help.endswith(".")
        assert option.parse(option.value) == option.value
        assert type(option.parse(option.value)) is type(option.value)
        assert [option.parse([choice]) for choice in option.choices if option.type == "list"] == [
            [choice] for choice in option.choices if option.type == "list"
        ]


def test_every_run_setting_is_described_with_the_default_of_the_request():
    request = Request(("m",), "d", "lgip")
    in_request = {option.name: getattr(request, option.name) for option in SETTINGS}
    # A request has tuples, a job file has lists
    assert json.dumps({option.name: option.value for option in SETTINGS}) == json.dumps(in_request)
    assert {option.name for option in SETTINGS} == set(vars(request)) - {
        "models",
        "dataset",
        "probe",
        "options",
        "errata",  # digests from a file, available only on the command line
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
def test_a_valid_value_is_parsed_to_the_type_of_the_option(name: str, typed: object, value: object):
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
def test_an_invalid_value_is_refused_with_the_expected_ones(
    name: str, typed: object, expected: str
):
    assert expected in option_error(ROCOCO[name], typed)


def test_a_path_with_a_comma_is_not_split():
    edits = next(option for option in registry.load_probe("lgip").options if option.name == "edits")
    assert edits.parse(["a", "b.jsonl"]) == "a,b.jsonl"


def test_values_out_of_bounds_are_refused_with_the_bounds():
    option = Option(name="n", default=3, label="N", help="A number.", minimum=2, maximum=5)
    assert [option.parse(n) for n in (2, "5")] == [2, 5]
    for n in (1, 6):
        assert re.search("Expected a whole number from 2 to 5", option_error(option, n))


def test_an_unknown_option_is_refused_with_the_available_ones():
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
def test_a_removed_option_is_refused_in_one_line_with_the_remedy(probe: str, value: object):
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
def test_the_key_of_an_exact_run_is_unchanged_after_removing_approximate_search(
    probe: str, expected: tuple[str, str], tmp_path
):
    loaded = registry.load_probe(probe)
    metrics = tuple(f"{metric.name}@1" for metric in loaded.metrics)
    for given in ({}, {"approximate": 0}, {"approximate": "0"}):
        options = loaded.pin(parse_options(loaded.options, given, "Probe"), tmp_path)
        run = Run("m", "d", "data", "dd", loaded.name, 1, metrics, dict(options))
        assert (run.key, run.case_key) == expected
