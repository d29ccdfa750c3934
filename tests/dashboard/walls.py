"""Functions that read and click walls and charts, because AppTest can only draw components and charts."""

import json

from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest


def component_values(at: AppTest, name: str) -> list[tuple[str, dict]]:
    """Return the ids and values of the page's components with this name."""
    return [
        (element.proto.id, json.loads(element.proto.json or "{}"))
        for element in at.get("bidi_component")
        if element.proto.component_name == f"vlprobe_{name}"
    ]


def wall(at: AppTest) -> dict:
    """Return the data of the page's wall, with no cards if the page has no wall."""
    values = [values for _, values in component_values(at, "wall") if not values["strip"]]
    return values[0] if values else {"cards": [], "heading": ""}


def card_ids(at: AppTest) -> list[str]:
    """Return the ids of the cases on the wall, in order."""
    return [card["id"] for card in wall(at)["cards"]]


def send(at: AppTest, name: str, event: str, value: object, place: int = 0) -> AppTest:
    """Send an event of a component to the page, as a click does; `place` selects among components with the name."""
    return _send(at, component_values(at, name)[place][0], event, value)


def _send(at: AppTest, component_id: str, event: str, value: object) -> AppTest:
    trigger = WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{component_id}__events")
    trigger.json_trigger_value = json.dumps([{"event": event, "value": value}])
    states = at._tree.get_widget_states()
    states.widgets.append(trigger)
    assert isinstance(states, WidgetStates)
    at._run(states)
    assert not at.exception, at.exception[0].message
    return at


def values_of(at: AppTest, key: str) -> dict:
    """Return the data of the component with this key, empty if the page has none."""
    for element in at.get("bidi_component"):
        if element.key == key:
            return json.loads(element.proto.json or "{}")
    return {}


def send_to(at: AppTest, key: str, event: str, value: object) -> AppTest:
    """Send an event of the component with this key to the page."""
    component_id = next(
        element.proto.id for element in at.get("bidi_component") if element.key == key
    )
    return _send(at, component_id, event, value)


def figure_of(at: AppTest, key: str) -> dict:
    """Return the data and the layout of the chart with this key, empty if the page has none."""
    for element in at.get("plotly_chart"):
        if element.key == key:
            return json.loads(element.proto.spec)
    return {}


def marks_of(figure: dict) -> dict[tuple, dict]:
    """Return the marks of a chart by their `customdata`: place, hover text, symbol, color."""
    marks = {}
    for trace in figure.get("data", []):
        if trace["type"] == "bar":  # transparent: a row that can be clicked
            continue
        for index, values in enumerate(trace.get("customdata") or []):
            symbol = trace["marker"]["symbol"]
            marks[tuple(values)] = {
                "x": trace["x"][index],
                "y": trace["y"][index],
                "text": trace["text"][index],
                "symbol": symbol if isinstance(symbol, str) else symbol[index],
                "color": trace["marker"]["color"],
                "name": trace["name"],
            }
    return marks


def select_marks(at: AppTest, key: str, *marks: tuple, is_area: bool = False) -> AppTest:
    """Select marks of a chart by their `customdata`, in a box if `is_area`; published marks have no data."""
    chart = next(element for element in at.get("plotly_chart") if element.key == key)
    points = [{"customdata": list(mark)} if mark else {"x": 1.0} for mark in marks]
    box = [{"xref": "x", "yref": "y", "x": [0, 1], "y": [0, 1]}] if is_area else []
    selection = {"points": points, "point_indices": [], "box": box, "lasso": []}
    states = at._tree.get_widget_states()
    states.widgets.append(
        WidgetState(id=chart.proto.id, string_value=json.dumps({"selection": selection}))
    )
    at._run(states)
    assert not at.exception, at.exception[0].message
    return at
