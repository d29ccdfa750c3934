"""Two lists of first pictures, one below the other, as HTML."""

from collections.abc import Mapping, Sequence

import htpy

from vlprobe.render.attribution import credits_line
from vlprobe.render.html.cases import ranked_words
from vlprobe.views.figures import FirstLists


def before_and_after(
    lists: FirstLists,
    picture_of: Mapping[str, str],
    source: Mapping[str, str],
    names: Sequence[str],
) -> str:
    """A caption, and its first pictures before and after a fine-tuning.

    Args:
        lists: Of items.
        picture_of: Names of pictures by item.
        source: Thumbnails as data addresses by these names.
        names: Names of the models before and after.
    """
    rows: list[htpy.Node] = [htpy.p(dir="auto")[htpy.strong[lists.caption]]]
    for name, items in zip(names, (lists.before, lists.after), strict=True):
        images = []
        for rank, item in enumerate(items, 1):
            alt, css = ranked_words(rank, item, lists.item, set(lists.before))
            address = source.get(picture_of.get(item, ""), "")
            images.append(htpy.img(src=address, alt=alt, title=alt, class_=css))
        rows += [
            htpy.p(".vp-quiet.vp-small")[name],
            htpy.div(".vp-strip")[images],
            credits_line(picture_of.get(item, "") for item in items),
        ]
    return str(htpy.div(style="max-width:40rem")[rows])
