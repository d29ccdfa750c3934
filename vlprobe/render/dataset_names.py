"""Display names for datasets, by the prefix of the stored name."""

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
