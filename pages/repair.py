"""Repair: what a loss that was meant to repair a model repaired, and what it cost;
and a fine-tuning to watch.
"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import repair, training

frame.enter()
st.title("What repairs a model, and at what cost?", anchor=False)
st.markdown(
    "The papers propose losses that should teach a model what their probes find missing. Do they, "
    "and at what cost? A model is asked all probes' questions before a fine-tuning and after it, "
    "beside a control that was fine-tuned just as long without the loss: **only the difference to "
    "the control says what the loss did.**"
)
st.header("Before, control and after")
models = repair.repaired()
repair.changed(models)
repair.seeds(models)

st.header("Fine-tune a model")
st.markdown(
    "The small demo models learn in minutes on a processor. Train the plain control once for each "
    "length, with the same steps, rate, seed and pictures; for models of your own there is "
    "`vlprobe train`."
)
training.training_form()
st.header("Trainings")
training.trainings(repair.probe_tuned)
