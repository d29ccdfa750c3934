"""Figures of single papers contain the given numbers."""

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render import charts


def test_each_pair_of_captions_is_a_stepped_line_that_ends_with_its_last_bin():
    rows = [("near", 0, 2, 0.25), ("near", 2, 4, 0.75), ("far", 0, 2, 0.0), ("far", 2, 4, 1.0)]
    figure = charts.papers.edit_distances(
        pd.DataFrame(rows, columns=["model", "left", "right", "share"])
    )
    assert [trace.name for trace in figure.data] == ["near", "far"]
    near = figure.data[0]
    assert (
        list(near.x) == [0, 2, 4] and list(near.y) == [0.25, 0.75, 0.75] and near.line.shape == "hv"
    )
    assert len({(trace.line.color, trace.line.dash) for trace in figure.data}) == 2


def test_a_turning_point_is_drawn_between_two_steps():
    figure = go.Figure()
    charts.papers.turning_point(figure, {"a": "A", "b": "B", "c": "C"}, "c", "from here")
    assert figure.layout.shapes[0].x0 == figure.layout.shapes[0].x1 == 1.5
    assert "from here" in figure.layout.annotations[0].text
