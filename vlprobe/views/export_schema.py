"""The schema of an export: the version of its layout, and the meaning of each column."""

SCHEMA_VERSION = (
    1  # raised when a table or column goes, moves or changes its meaning; not when one is added
)

RUN = "key of the run, as in runs.key"
CASE = (
    "number of the case within its question set, from 0: with the run's case_key the row of cases"
)
TABLES: dict[str, dict[str, str]] = {
    "runs": {
        "key": "key of the run: a hash of everything that can change a number",
        "case_key": "key of the question set: runs with the same key answered the same cases",
        "model": "stored name of the model",
        "dataset": "stored name of the dataset",
        "probe": "name of the probe, such as lgip",
        "limit": "maximum number of items; 0: all",
        "seed": "seed of all draws",
        "options": "options that differ from the probe's defaults, as ' · name value'",
        "n_items": "number of items",
        "n_cases": "number of cases",
        "spread": "similarity spread: standard deviation of the cosine over mismatched pairs; cosine",
        "seconds": "duration of the run",
        "finished": "end of the run, ISO 8601, UTC",
        "older": "parts of the run that are of an older version than the exporting vlprobe; '' for none",
        "note": "caveats of the numbers; '' for none",
        "bundled": "true if the run came with vlprobe, false if it is yours",
    },
    "cases": {
        "case_key": "of the question set",
        "case": "number of the case within its question set, from 0",
        "id": "of the case",
        "item": "id of the item",
        "item_code": "number of the item's unit of resampling",
        "cluster": "rows of a cluster are resampled together; often the picture",
        "group": "cases of one original, such as a caption",
        "kind": "kind of case, such as flip or paraphrase",
        "subtype": "such as color or number",
        "rule": "rule that made the edit",
        "source": "words taken out",
        "target": "words put in",
        "images": "names of the pictures",
        "texts": "in the order of scores",
        "roles": "of the texts, in their order",
        "tags": "of the item, name to value",
    },
    "scores": {
        "run": RUN,
        "case": CASE,
        "item": "id of the item",
        "kind": "as in cases",
        "subtype": "as in cases",
        "rule": "as in cases",
        "strength_bin": "of the edit, as tables break it down",
        "scores": "scores of the case's texts and pictures, in the order of the probe; NULL or NaN: unknown",
        "text_scores": "of its texts with each other",
        "margin": "score of the true caption minus the best score of a wrong one; 0 or less: fooled",
        "top": "candidate that was ranked first",
        "rank_clean": "rococo: rank of the best own candidate among originals, from 1; ties count against it",
        "rank": "rococo: the same among all candidates, altered ones too",
        "least_rank_clean": "rococo: rank_clean if no tie counted",
        "least_rank": "rococo: rank if no tie counted",
        "top_altered": "rococo: 1 where an altered candidate is at least as good as every original",
        "top_tied": "rococo: 1 where the best original and the best altered candidate are equal",
        "gallery_size": "prsm: pictures that were searched",
    },
    "estimates": {
        "run": RUN,
        "metric": "as in `vlprobe list metrics`",
        "averaging": "macro: mean of each caption's mean; micro: all pooled",
        "by": "all, subtype, rule, strength_bin or tag:NAME",
        "slice": "value of what it is broken down by; '' for all",
        "value": "the mean; NaN: unknown",
        "low": "end of the 95 % interval",
        "high": "end of the 95 % interval",
        "n_items": "number of items",
        "n_cases": "number of cases",
        "ties": "cases in which what is compared is equal; they count as failures",
    },
    "annotations": {
        "case_key": "of the question set",
        "case": "number of the case within its question set, from 0",
        "id": "of the case",
        "tags": "that people gave the case, sorted",
        "note": "that people wrote about the case; '' for none",
    },
    "fronts": {
        "run": RUN,
        "case": CASE,
        "clean_items": "items of the best candidates of the clean gallery, best first",
        "clean_texts": "their texts",
        "clean_scores": "their similarities",
        "whole_items": "items of the best candidates of the whole gallery, altered ones among them",
        "whole_texts": "their texts",
        "whole_partners": "of mixed pictures: whose picture was mixed in; '' of a picture as it is",
        "whole_altered": "which of them are altered",
        "whole_scores": "their similarities",
        "partner": "whose picture is mixed into the case's own; '' of a caption",
        "own_altered": "similarity of the best altered candidate of the case's own item",
        "own_altered_rank": "its rank from 1, if no tie counted against it",
    },
    "comparisons": {
        "run": RUN,
        "case": CASE,
        "comparison": "prsm: the two versions of a query whose rankings are compared, as o-c1",
    },
}
OF_PROBE = "a column of the probe {probe}, as its file in vlprobe/probes documents it"


def meaning(table: str, column: str, probes: str) -> str:
    """The meaning of a column.

    Args:
        table: Its table.
        column: Its name.
        probes: Whose runs are in the export, for columns that probes add.
    """
    return TABLES.get(table, {}).get(column) or OF_PROBE.format(probe=probes)
