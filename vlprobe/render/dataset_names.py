"""Display names of datasets, by the prefixes of their stored names."""

DATASETS = {  # by bundled name or prefix: "{}" is the last part of the name
    "demo": "Drawn scenes",
    "demo-pairs": "Drawn twins",
    "demo-triplets": "Drawn triplets",
    "demo-series": "Drawn series",
    "bundled": "{}",
    "coco": "Photographs ({})",
    "folder": "Pictures ({})",
    "pairs": "Pairs ({})",
    "frames": "Video frames ({})",
    "triplets": "Triplets ({})",
    "queries": "Queries ({})",
    "orders": "Orders of people ({})",
    "rococo": "RoCOCO ({})",
    "csv": "Table ({})",
    "table": "Table ({})",
}
