"""Access control: sign-in, and the read-only mode for public demos."""

from urllib.parse import urlsplit

import streamlit as st
from streamlit.errors import StreamlitAuthError

from vlprobe.dashboard import guard
from vlprobe.dashboard.state import link_docs, plain, quiet
from vlprobe.storage import access

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def is_local(address: str) -> bool:
    """Return whether the address of a page works on this computer only."""
    return urlsplit(address).hostname in LOCAL_HOSTS


def admit() -> None:
    """Check that the visitor has signed in, if sign-in is required. Otherwise, draw a sign-in button and stop the page.

    Sign-in is required by `vlprobe dashboard --sign-in`, and wherever Streamlit's secrets configure a
    provider. People who are not admitted cannot upload files either.
    """
    signed_in = st.user.get("is_logged_in")
    if signed_in is None and not access.sign_in():
        guard.allow()
        return
    email = str(st.user.get("email", ""))
    if not signed_in:
        guard.refuse()
        st.title("vlprobe")
        st.markdown("Sign in to use this dashboard.")
        st.button(
            "Sign in", type="primary", icon=":material/login:", key="sign_in", on_click=_sign_in
        )
        if problem := st.session_state.pop("sign_in_problem", ""):
            st.error(link_docs(problem), icon=":material/error:")
        st.stop()
    if not access.allowed(email, st.user.get("email_verified") is True):
        guard.refuse()
        st.title("vlprobe")
        st.error(
            f"{plain(email) or 'This account'} does not have access to this dashboard. Ask its "
            "administrator for access."
        )
        st.button("Sign out", key="sign_out", on_click=st.logout)
        st.stop()
    guard.allow()
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.button(
            "Sign out", key="sign_out", type="tertiary", on_click=st.logout, help=plain(email)
        )


def _sign_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.session_state["sign_in_problem"] = (
            f"Sign-in failed: {str(error).splitlines()[0].strip()}"
        )


def changes(impossible: str) -> bool:
    """Return whether this dashboard allows changes. If not, draw a note that ends with the text in `impossible`."""
    if not access.read_only():
        return True
    quiet(f"This is a read-only demo. {impossible}")
    return False
