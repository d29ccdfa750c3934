"""Whether the captions of a table are captions, and true of their picture."""

import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets.labels import LABEL, check_values
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.errors import InvalidInput

# As CxC's "COCO_val2014:sentid:648388": one word with a number in it.
AN_ID = pc.MatchSubstringOptions(r"^\s*[^\s\d]*\d\S*\s*$")


def check(table: Table, layout: Layout, name: str) -> None:
    """Check that the captions of a table are captions, and true as far as the table says.

    Args:
        table: As it was read.
        layout: Which of its columns mean what.
        name: The name of the dataset, for an error.

    Raises:
        InvalidInput: a column `label` has two values, one for true and one for false captions, and
            the layout and the name of the dataset do not say what to do with it; or all captions
            are ids.
    """
    captions = table.columns.get(layout.columns.get("caption", ""))
    if captions is not None and _are_ids(captions):
        raise InvalidInput(
            f"'{table.file}', column '{layout.columns['caption']}': '{captions[0].as_py()}' and all others are "
            "ids, not captions. Write the captions in their place, or name another column: +caption=COLUMN."
        )
    labels = table.columns.get(LABEL)
    is_used = LABEL in (*layout.needs, *layout.columns.values())
    if layout.kind not in ("captions", "people") or labels is None or is_used:
        return
    if not pa.types.is_string(labels.type):
        return
    counts = {pair["values"]: pair["counts"] for pair in labels.value_counts().to_pylist()}
    check_values(table.file, counts, name)


def _are_ids(captions: pa.ChunkedArray) -> bool:
    if not len(captions) or not pa.types.is_string(captions.type):
        return False
    is_id = pc.call_function("match_substring_regex", [captions], AN_ID)
    return bool(pc.call_function("all", [is_id]).as_py())
