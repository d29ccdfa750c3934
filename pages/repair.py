"""The Repair page: the gains and costs of fine-tuning, and a form to fine-tune a model."""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import repair, training

frame.enter()
st.title("What repairs a model, and at what cost?", anchor=False)
st.markdown(
    "Fine-tuning with wrong captions that are close to the true ones (hard negatives), or with "
    "the losses from the papers, can repair what a probe finds. The original model, the repaired "
    "model and a control that was fine-tuned without the repair answer the same questions: "
    "**only the difference from the control is the effect of the repair.**"
)
st.header("Before, control and after")
repair.changed(repair.repaired())
training.draw_steps()

st.header("Fine-tune a model")
st.markdown(
    "The small demo models train in minutes on a CPU. Also train the plain control, with the "
    "same steps, learning rate, seed and pictures as the repair. To fine-tune your own models, "
    "use `vlprobe train`."
)
training.training_form()
st.header("Training runs")
training.trainings()
