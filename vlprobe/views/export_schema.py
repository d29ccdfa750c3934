"""The schema of an export: its layout version and a description of each column."""

# Raised when a table or column goes, moves or changes its meaning; not when one is added
SCHEMA_VERSION = 1

RUN = "key of the run, as in runs.key"
CASE = "index of the case in its question set, from 0; joins with cases on the run's case_key"
TABLES: dict[str, dict[str, str]] = {
    "runs": {
        "key": "key of the run: a hash of everything that affects its results",
        "case_key": "key of the question set; runs with the same key answered the same cases",
        "model": "stored name of the model",
        "dataset": "stored name of the dataset",
        "probe": "name of the probe, such as lgip",
        "limit": "maximum number of items; 0 means all",
        "seed": "seed for all random choices",
        "options": "options that differ from the probe's defaults, as ' · name value'",
        "n_items": "number of items",
        "n_cases": "number of cases",
        "spread": "standard deviation of the cosine over mismatched pairs, in cosine units",
        "seconds": "duration of the run in seconds",
        "finished": "end of the run (ISO 8601, UTC)",
        "older": (
            "components of the run (probe, metrics) that are older than in this version "
            "of vlprobe; '' for none"
        ),
        "note": "caveats of the numbers; '' for none",
        "bundled": "true if the run is bundled with vlprobe",
    },
    "cases": {
        "case_key": "key of the question set",
        "case": "index of the case in its question set, from 0",
        "id": "id of the case",
        "item": "id of the item",
        "item_code": "index of the resampling unit that the item belongs to",
        "cluster": "resampling cluster, often the picture",
        "group": "id shared by cases made from the same original, such as a caption",
        "kind": "kind of case, such as flip or paraphrase",
        "subtype": "type of the edit, such as color or number",
        "rule": "rule that made the edit",
        "source": "words that the edit removed",
        "target": "words that the edit inserted",
        "images": "names of the pictures",
        "texts": "captions of the case, in the order of the column scores",
        "roles": "role of each caption, in the order of the column texts",
        "tags": "tags of the item, as a map from name to value",
    },
    "scores": {
        "run": RUN,
        "case": CASE,
        "item": "id of the item",
        "kind": "same as in the table `cases`",
        "subtype": "same as in the table `cases`",
        "rule": "same as in the table `cases`",
        "strength_bin": "strength of the edit, such as weak or strong",
        "scores": (
            "scores of the case's texts and pictures, in the probe's order; NULL or NaN if unknown"
        ),
        "text_scores": "similarities between the texts of the case",
        "margin": "score of the true caption minus the best score of a wrong one; 0 or less: fooled",
        "top": "candidate ranked first",
        "rank_clean": (
            "rococo: rank of the best correct candidate among originals, from 1; ties count "
            "against the candidate"
        ),
        "rank": (
            "rococo: rank of the best correct candidate among all candidates, altered ones included"
        ),
        "least_rank_clean": "rococo: rank_clean with ties counted in favor of the candidate",
        "least_rank": "rococo: rank with ties counted in favor of the candidate",
        "top_altered": "rococo: 1 if an altered candidate scores at least as high as every original",
        "top_tied": "rococo: 1 if the best original and the best altered candidate have equal scores",
        "gallery_size": "prsm: number of pictures in the gallery",
    },
    "estimates": {
        "run": RUN,
        "metric": "name of the metric, as in `vlprobe list metrics`",
        "averaging": "micro: all cases pooled; macro: mean of the per-caption means",
        "by": "breakdown: all, subtype, rule, strength_bin or tag:NAME",
        "slice": "value of the breakdown; '' for all",
        "value": "value of the metric; NaN if unknown",
        "low": "lower bound of the 95 % interval",
        "high": "upper bound of the 95 % interval",
        "n_items": "number of items",
        "n_cases": "number of cases",
        "ties": "number of ties, which count as failures",
    },
    "annotations": {
        "case_key": "key of the question set",
        "case": "index of the case in its question set, from 0",
        "id": "id of the case",
        "tags": "tags of the case, sorted",
        "note": "note on the case; '' for none",
    },
    "slices": {
        "name": "name of the slice",
        "case_key": "key of the question set",
        "case": "index of the case in its question set, from 0",
        "id": "id of the case",
        "digest": "digest of the case's kind and texts; if it has changed, the slice is rejected",
        "filter": "filter that selected the cases when the slice was saved, as JSON",
    },
    "fronts": {
        "run": RUN,
        "case": CASE,
        "clean_items": "items of the top candidates in the clean gallery, best first",
        "clean_texts": "captions of the candidates in clean_items",
        "clean_scores": "similarities to the query of the candidates in clean_items",
        "whole_items": "items of the top candidates in the whole gallery, altered ones included",
        "whole_texts": "captions of the candidates in whole_items",
        "whole_partners": (
            "for each candidate in whole_items: item whose picture was mixed in, '' for an "
            "unmixed picture"
        ),
        "whole_altered": "for each candidate in whole_items: true if the candidate is altered",
        "whole_scores": "similarities to the query of the candidates in whole_items",
        "partner": "item whose picture is mixed into the picture of the case; '' for captions",
        "own_altered": (
            "similarity to the query of the best candidate that was altered from the case's "
            "own item"
        ),
        "own_altered_rank": "rank of the candidate in own_altered, from 1; ties count in its favor",
    },
    "comparisons": {
        "run": RUN,
        "case": CASE,
        "comparison": "prsm: the two versions of a query that are compared, such as o-c1",
    },
}
OF_PROBE = "column of the probe {probe}, documented in its file in vlprobe/probes"


def meaning(table: str, column: str, probes: str) -> str:
    """Return the description of a column in an exported table.

    Args:
        probes: Names of the probes in the export. They are named in the description of columns that
            probes add.
    """
    return TABLES.get(table, {}).get(column) or OF_PROBE.format(probe=probes)
