"""What a test reads of walls and charts, and how it presses them: AppTest draws components and charts only."""

import json

from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest


def component_values(at: AppTest, name: str) -> list[tuple[str, dict]]:
    """Ids and values of the components of this name that the page has."""
    return [
        (element.proto.id, json.loads(element.proto.json or "{}"))
        for element in at.get("bidi_component")
        if element.proto.component_name == f"vlprobe_{name}"
    ]


def wall(at: AppTest) -> dict:
    """What the page's wall was given; no cards where there is no wall."""
    values = [values for _, values in component_values(at, "wall") if not values["strip"]]
    return values[0] if values else {"cards": [], "heading": ""}


def card_ids(at: AppTest) -> list[str]:
    """Ids of the cases on the wall, in order."""
    return [card["id"] for card in wall(at)["cards"]]


def send(at: AppTest, name: str, event: str, value: object, place: int = 0) -> AppTest:
    """Has a component, the one at this place of those with the name, tell the page something as a press does."""
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
    """What the component with this key was given; empty where the page has none."""
    for element in at.get("bidi_component"):
        if element.key == key:
            return json.loads(element.proto.json or "{}")
    return {}


def send_to(at: AppTest, key: str, event: str, value: object) -> AppTest:
    """Has the component with this key tell the page something."""
    component_id = next(
        element.proto.id for element in at.get("bidi_component") if element.key == key
    )
    return _send(at, component_id, event, value)


def figure_of(at: AppTest, key: str) -> dict:
    """Return the data and the layout of the chart with this key; empty where the page has none."""
    for element in at.get("plotly_chart"):
        if element.key == key:
            return json.loads(element.proto.spec)
    return {}


def marks_of(figure: dict) -> dict[tuple, dict]:
    """Return the marks of a chart by their `customdata`: place, hover text, symbol, color."""
    marks = {}
    for trace in figure.get("data", []):
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
    """Select marks of a chart by their `customdata`, with a box around them if `is_area`; no data: published ones."""
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
