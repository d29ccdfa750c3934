"""A PowerPoint file of slides: 16:9, with text that can be edited, native bar charts and the speaker notes.

The input is that of the component `slides`, as for the HTML file (`surfaces.page.slides_file`). Lengths are in inches,
sizes of type in points.
"""

import base64
import io
import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.render.attribution import SECURE
from vlprobe.scoring import pictures

Values = Mapping[str, Any]
Box = tuple[float, float, float, float]  # left, top, width, height
Contents = Mapping[str, io.BytesIO | None]  # pictures by their keys
WIDTH, HEIGHT, MARGIN, GAP = 40 / 3, 7.5, 0.6, 0.2
PICTURES = 5.8  # width of the pictures next to the words
LEAST_HEIGHT = 0.5  # of a shape, if a slide has more text than fits
NUMBERS = 1.75  # height of a number and what it counts
EMU, POINT = 914400, 12700  # PowerPoint's unit, per inch and per point
SMALL, LEAST, LARGE, HEADING, TITLE, FIGURE = 16, 20, 22, 28, 36, 40  # SMALL: credits and sources
COVER = 54
SCALES = (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)  # of type; below 1 only if a text does not fit
LETTER, BOLD, LINE = 0.52, 0.57, 1.25  # widths of letters and height of a line, by type size
PADDING = 0.15  # at the left and right of a framed caption
WORDS = 0.6  # share of the height for words above pictures or bars, at most
IN_A_ROW = 5  # pictures
INK, QUIET, GREY = "1C2330", "566173", "A9B0BC"
COLORS = {"true": "00696B", "lie": "B1360B", "fooled": "B1360B", "held": "00696B"}
SIGNS = {"true": "✓  ", "lie": "✕  ", "plain": "", "fooled": "✕ ", "held": "✓ ", "tied": "= "}
INVALID = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
NEEDED = "A PowerPoint file", "python-pptx", "'vlprobe[slides]'"
TITLE_ONLY = 5  # layout of python-pptx's template
INTERVALS = """<c:errBars {namespace}><c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="1"/>
<c:plus><c:numLit>{plus}</c:numLit></c:plus><c:minus><c:numLit>{minus}</c:numLit></c:minus></c:errBars>"""


class Line(NamedTuple):
    """A paragraph in one size. A run is a text, its style as on the slide, and the address of a link, if any."""

    runs: Sequence[Sequence[str]]
    size: float = LEAST
    color: str = INK
    is_bold: bool = False

    def height(self, width: float, scale: float = 1) -> float:
        """Estimate the height in a column of the given width, with type that is scaled down."""
        size = self.size * scale / 72
        letter = BOLD if self.is_bold else LETTER
        n_lines = math.ceil(sum(len(run[0]) for run in self.runs) * size * letter / width)
        return n_lines * size * LINE


def is_installed() -> bool:
    """Return whether python-pptx is installed."""
    return find_spec("pptx") is not None


def powerpoint_file(values: Values) -> bytes:
    """Return a talk as a PowerPoint file with a slide for each slide that is shown.

    Args:
        values: The input of the component `slides`. Its pictures are data URLs.

    Raises:
        MissingDependency: python-pptx is not installed.
    """
    if not is_installed():
        raise MissingDependency(*NEEDED)
    from pptx import Presentation

    talk: Any = Presentation()
    for layout in (talk.slide_master, *talk.slide_layouts):
        for shape in layout.placeholders:  # of a slide that is 10 inches wide
            shape.left, shape.width = (round(x * WIDTH / 10) for x in (shape.left, shape.width))
    talk.slide_width, talk.slide_height = _emu(WIDTH, HEIGHT)
    talk.core_properties.author = "vlprobe"
    talk.core_properties.title = _clean(values["heading"])[:255]
    contents = {key: _jpeg(source) for key, source in values["pictures"].items()}
    for slide in values["slides"]:
        for each in filter(None, (slide["question"], slide) if slide["on"] else ()):
            _draw(talk.slides.add_slide(talk.slide_layouts[TITLE_ONLY]), each, contents)
    buffer = io.BytesIO()
    talk.save(buffer)
    return buffer.getvalue()


def _emu(*inches: float) -> list[int]:
    return [round(EMU * each) for each in inches]


def _clean(text: str) -> str:
    """Return the text without characters that an XML file cannot contain."""
    return INVALID.sub("", text)


def _jpeg(source: str) -> io.BytesIO | None:
    """Return a picture as JPEG, because PowerPoint does not open WebP; None if it is missing or damaged."""
    buffer = io.BytesIO()
    try:
        content = base64.b64decode(source.partition(",")[2])
        pictures.decode(content, "A picture").save(buffer, "JPEG", quality=90)
    except (InvalidInput, ValueError):
        return None
    return buffer


def _draw(page: Any, slide: Values, contents: Contents) -> None:
    """Draw a slide: its words above or to the right of the pictures, then numbers or bars, and its note."""
    from pptx.enum.text import PP_ALIGN

    shown, figures, bars = slide["pictures"], slide["figures"], slide["bars"]
    is_beside = bool(slide["layout"] == "beside" and shown and not figures)
    width = WIDTH - 2 * MARGIN
    note = [Line([(slide["note"], "")], SMALL, QUIET)] * bool(slide["note"])
    end = max(HEIGHT - 0.4 - sum(each.height(width) for each in note), HEIGHT / 2)
    _write(page, (MARGIN, end, width, HEIGHT - 0.4 - end), note)
    is_high = is_beside or not (shown or figures or bars)
    left = MARGIN + (PICTURES + 2 * GAP) * is_beside
    column = (left, 0.4, WIDTH - MARGIN - left, (end - 0.6) * (1 if is_high else WORDS))
    top = GAP + _draw_words(page, slide, column, is_high)
    below = (MARGIN, top, width, max(end - GAP - top, LEAST_HEIGHT))
    if shown or figures:
        place = (MARGIN, 0.6, PICTURES, end - 0.8) if is_beside else below
        _draw_columns(page, slide, place, contents)
    if bars:
        _draw_chart(page, slide, below)
    if slide["layout"] == "cover":
        for paragraph in (each for shape in page.shapes for each in shape.text_frame.paragraphs):
            paragraph.alignment = PP_ALIGN.CENTER
    page.notes_slide.notes_text_frame.text = _clean("\n".join(slide["notes"]))


def _draw_words(page: Any, slide: Values, box: Box, is_centered: bool) -> float:
    """Write title, text and captions in the largest type that fits. Return their lower edge."""
    left, top, width, height = box
    tag, tag_style = slide["tag"]
    is_small = slide["options"] or slide["figures"] or slide["bars"]
    size = COVER if slide["layout"] == "cover" else HEADING if is_small else TITLE
    heading = Line(slide["heading"], size, INK, True)
    detail = re.sub(r"^[-*] ", "• ", slide["detail"], flags=re.MULTILINE).splitlines()
    texts = [Line([(line, "")], LARGE, QUIET) for line in detail]
    texts += [Line(_names(slide["marks"], True))] * bool(slide["marks"])
    blocks = [([Line([(tag, "")], LEAST, COLORS.get(tag_style, QUIET), True)] * bool(tag), "")]
    blocks += [([heading], "title"), (texts, "")]
    for number, option in enumerate(slide["options"], 1):
        sign = SIGNS.get(option["style"], f"{number}  ")
        caption = Line([(sign, option["style"]), *option["caption"]], LARGE)
        models = [Line(_names(option["marks"]), LEAST, QUIET)] * bool(option["marks"])
        blocks.append(([caption, *models], option["style"] or "vote"))
    blocks = [block for block in blocks if block[0]]
    for scale in SCALES:
        heights = [
            sum(each.height(width - 2 * PADDING, scale) for each in lines) + GAP * bool(style)
            for lines, style in blocks
        ]
        spare = height - sum(heights) - GAP * len(blocks)
        if spare >= 0:
            break
    top += max(spare, 0) / 2 * is_centered
    for (lines, style), high in zip(blocks, heights, strict=True):
        _write(page, (left, top, width, high), lines, scale, style)
        top += high + GAP
    return top - GAP


def _names(marks: Sequence[Values], has_signs: bool = False) -> list[tuple[str, str]]:
    """Return the names of models, if wanted with a sign for the answer."""
    runs = []
    for mark in marks:
        word = f": {mark['word']}" * (mark["state"] == "tied")
        runs += [(SIGNS.get(mark["state"], "") * has_signs, mark["state"])]
        runs += [(f"{mark['name']}{word}", ""), ("  ·  ", "")]
    return runs[:-1]


def _write(page: Any, box: Box, lines: Sequence[Line], scale: float = 1, style: str = "") -> None:
    """Write lines as plain text, into the title ("title"), or into a frame in the color of another style."""
    from pptx.dml.color import RGBColor
    from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE, PP_ALIGN

    if not lines:
        return
    box = (*box[:3], max(box[3], LEAST_HEIGHT))
    if style == "title":
        shape = page.shapes.title
        shape.left, shape.top, shape.width, shape.height = _emu(*box)
    else:
        shape = page.shapes.add_textbox(*_emu(*box))
    is_framed = style not in ("", "title")
    if is_framed:
        shape.line.color.rgb = RGBColor.from_string(COLORS.get(style, GREY))
    frame = shape.text_frame
    frame.auto_size = MSO_AUTO_SIZE.NONE
    frame.word_wrap, frame.vertical_anchor = True, MSO_ANCHOR.MIDDLE if style else MSO_ANCHOR.TOP
    frame.margin_left = frame.margin_right = _emu(PADDING * is_framed)[0]
    frame.margin_top = frame.margin_bottom = 0
    for index, line in enumerate(lines):
        paragraph = frame.add_paragraph() if index else frame.paragraphs[0]
        paragraph.alignment = PP_ALIGN.LEFT
        for text, mark, *link in line.runs:
            run = paragraph.add_run()
            run.text, run.font.size = _clean(text), round(line.size * scale) * POINT
            run.font.bold = line.is_bold or mark in ("true", "lie", "changed")
            run.font.underline = mark == "lie" and text not in SIGNS.values()
            run.font.color.rgb = RGBColor.from_string(COLORS.get(mark, line.color))
            if link and link[0].startswith(SECURE):
                run.hyperlink.address = _clean(link[0])


def _draw_columns(page: Any, slide: Values, box: Box, contents: Contents) -> None:
    """Draw pictures with their labels and credits in rows, each above its number if there are numbers."""
    shown, figures = slide["pictures"], slide["figures"]
    n_columns = min(max(len(shown), len(figures)), IN_A_ROW)
    n_rows = math.ceil(max(len(shown), len(figures)) / n_columns)
    left, top, width, height = box[0], box[1], box[2] / n_columns - GAP, box[3] / n_rows - GAP
    for index, figure in enumerate(figures):
        lines = [Line([(figure["figure"], "")], FIGURE, INK, True)]
        lines += [Line([(figure["label"], "")], LEAST, INK, True)]
        lines += [Line([(figure["detail"], "")], LEAST, QUIET)]
        x = left + index * (width + GAP)
        _write(page, (x, top + height - NUMBERS, width, NUMBERS), lines)
    rooms = [sum(line.height(width) for line in _labels(each, bool(figures))) for each in shown]
    for index, each in enumerate(shown):
        row, column = divmod(index, n_columns)
        x, y = left + column * (width + GAP), top + row * (height + GAP)
        if figures:
            # The longest label decides, so that all pictures have one height
            _draw_picture(page, each, (x, y, width, height - NUMBERS - GAP), contents, max(rooms))
        else:
            place = (x, y, width, height)
            _draw_picture(page, each, place, contents, rooms[index], is_centered=True)


def _labels(shown: Values, is_small: bool) -> list[Line]:
    """Return the label and the credit of a picture, small below one that has a number."""
    size = SMALL if is_small else LEAST
    label, credit, style = shown["label"], shown["credit"], shown["style"]
    runs = [(label, "")] if isinstance(label, str) else label
    lines = [Line(runs, size, COLORS.get(style, QUIET))] * bool(label)
    if credit:
        license_ = [(" · ", ""), (credit["license"], "", credit["licenseUrl"])]
        named = [(credit["label"], "", credit["page"]), *license_ * bool(credit["license"])]
        lines.append(Line(named, 0.8 * size, QUIET))
    return lines


def _draw_picture(
    page: Any, shown: Values, box: Box, contents: Contents, room: float, is_centered: bool = False
) -> None:
    """Draw a picture, its label and its credit. A missing picture is replaced by its alternative text.

    Args:
        room: Height that is left below the picture, for the label and the credit.
    """
    from pptx.dml.color import RGBColor

    left, top, width, height = box
    lines, style = _labels(shown, not is_centered), shown["style"]
    content = contents.get(shown["key"])
    if content is None:
        _write(page, box, [Line([(shown["alt"], "")], LEAST, QUIET), *lines])
        return
    high = max(height - room, LEAST_HEIGHT)
    drawn = page.shapes.add_picture(content, *_emu(left, top))
    ratio = min(width * EMU / drawn.width, high * EMU / drawn.height)
    drawn.width, drawn.height = round(drawn.width * ratio), round(drawn.height * ratio)
    if is_centered:
        drawn.top += _emu((high - drawn.height / EMU) / 2)[0]
    drawn.element.nvPicPr.cNvPr.set("descr", _clean(shown["alt"]))
    if style in COLORS:
        drawn.line.color.rgb, drawn.line.width = RGBColor.from_string(COLORS[style]), 3 * POINT
    end = (drawn.top + drawn.height) / EMU
    _write(page, (left, end, width, top + height - end), lines)


def _draw_chart(page: Any, slide: Values, box: Box) -> None:
    """Draw a bar chart of PowerPoint with intervals, and a line at the limit. Values are next to the names."""
    from pptx.chart.data import CategoryChartData
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_CHART_TYPE, XL_TICK_LABEL_POSITION, XL_TICK_MARK
    from pptx.oxml import parse_xml
    from pptx.oxml.ns import nsdecls

    bars, scale = slide["bars"], slide["scale"] or 1
    is_sided = any(bar["sided"] for bar in bars)
    data = CategoryChartData()
    # With the space, no name is a formula or a link in the table behind the chart
    data.categories = [_clean(f" {bar['name']}\u2003{bar['text']}") for bar in bars]
    ends = [(bar["start"] or 0, bar["end"] or 0) for bar in bars]
    lengths = [start + end - 1 if is_sided else (end - start) / scale for start, end in ends]
    data.add_series("Value", lengths)
    chart = page.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *_emu(*box), data).chart
    names, axis, (series,) = chart.category_axis, chart.value_axis, chart.plots[0].series
    chart.font.size = POINT * min(LEAST, round(72 * box[3] / len(bars) / LINE / LINE))
    chart.has_legend, chart.has_title, chart.plots[0].gap_width = False, False, 60
    names.reverse_order, names.tick_label_position = True, XL_TICK_LABEL_POSITION.LOW
    axis.minimum_scale, axis.maximum_scale = -1.0 * is_sided, 1 / scale
    axis.tick_label_position, axis.major_tick_mark = XL_TICK_LABEL_POSITION.NONE, XL_TICK_MARK.NONE
    axis.format.line.fill.background()
    axis.has_major_gridlines = bool(slide["limit"])
    if slide["limit"]:
        axis.major_unit, axis.has_title = slide["limit"] / scale, True
        remarks = [f"{bar['name']}: {bar['remark']}" for bar in bars if bar["remark"]]
        label = ". ".join([f"Line: {slide['limitLabel']}", *remarks])
        axis.axis_title.text_frame.text = _clean(label)
        font = axis.axis_title.text_frame.paragraphs[0].font
        font.size, font.bold = SMALL * POINT, False
    for point, bar in zip(map(series.points.__getitem__, range(len(bars))), bars, strict=True):
        color = re.search(r"#([0-9a-f]{6})", bar["color"]) if bar["style"] == "best" else None
        point.format.fill.solid()
        rgb = color[1].upper() if color else COLORS.get(bar["style"], GREY)
        point.format.fill.fore_color.rgb = RGBColor.from_string(rgb)
    for dot in series.format.element.findall("{*}dPt"):  # PowerPoint whitens negative bars
        kept = parse_xml(f'<c:invertIfNegative {nsdecls("c")} val="0"/>')
        dot.find("{*}idx").addnext(kept)
    if slide["scale"]:
        pairs = list(zip(bars, ends, strict=True))
        above = [((bar["high"] or end) - end) / scale for bar, (_, end) in pairs]
        below = [0 if bar["low"] is None else (end - bar["low"]) / scale for bar, (_, end) in pairs]
        plus, minus = map(_numbers, (above, below))
        xml = INTERVALS.format(namespace=nsdecls("c"), plus=plus, minus=minus)
        series.format.element.find("{*}cat").addprevious(parse_xml(xml))


def _numbers(values: Sequence[float]) -> str:
    points = (f'<c:pt idx="{index}"><c:v>{each}</c:v></c:pt>' for index, each in enumerate(values))
    return f'<c:ptCount val="{len(values)}"/>{"".join(points)}'
