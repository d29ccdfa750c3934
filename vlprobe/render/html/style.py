"""The few rules of style that Streamlit's theme does not have. Colours are pairs: for light, for dark."""

STYLE = """<style>
:root {
  --vp-bg: light-dark(#ffffff, #12161d);
  --vp-soft: light-dark(#f3f5f8, #1d232d); --vp-mat: light-dark(#eef1f5, #0c0f14);
  --vp-line: light-dark(#dde2e9, #2f3844);
  --vp-edge: light-dark(#8a94a3, #616c7d); --vp-mark: light-dark(#7b8696, #7b8798);
  --vp-ink: light-dark(#1c2330, #e6e9ef); --vp-quiet: light-dark(#566173, #a7b1c0);
  --vp-press: light-dark(#1f4e9c, #8ab4f8); --vp-press-tint: light-dark(#e8eef8, #1f2c43);
  --vp-on-press: light-dark(#ffffff, #12161d);
  --vp-true: light-dark(#00696b, #6fd0cf); --vp-true-tint: light-dark(#dcf1f0, #12393b);
  --vp-lie: light-dark(#b1360b, #ffa883); --vp-lie-tint: light-dark(#fde7dc, #4a2314);
  --vp-tie: light-dark(#7a5200, #f0c36d); --vp-tie-tint: light-dark(#fbf0d4, #3d2f10);
  --vp-shade: light-dark(rgb(20 27 38 / .42), rgb(4 6 10 / .62));
  --vp-strong-line: var(--vp-edge);
}
[data-testid="stApp"] { --vp-page: 1280px; --vp-edges: 40px; }
[data-testid="stApp"]:has(.st-key-wall, .st-key-facing) { --vp-page: 1920px; }
@media (max-width: 640px) { [data-testid="stApp"] { --vp-edges: 16px; } }
[data-testid="stMainBlockContainer"], [data-testid="stBottomBlockContainer"] {
  max-width: var(--vp-page); padding-left: var(--vp-edges); padding-right: var(--vp-edges); }
/* What follows a part of the page that is not drawn yet would move: it is shown once its place is known. */
:is([data-testid="stElementContainer"], [data-testid="stLayoutWrapper"], [data-testid="stColumn"],
  [data-testid="stGridCell"]):has([data-testid="stSkeleton"], [data-testid="stBidiComponentIsolated"]:not([data-drawn]))
  ~ * { &, label, [data-testid="stMarkdown"] > div { animation: vp-wait 10s; } }
@keyframes vp-wait { from, to { visibility: hidden; } }
[data-testid="stHeader"] { border-bottom: 1px solid var(--vp-line); }
[data-testid="stHeader"] [data-testid="stToolbar"] { max-width: var(--vp-page); margin: 0 auto; padding-left: 24px;
  padding-right: 24px; }
:has(> [data-testid="stHeaderLogo"]) { display: flex; align-items: center; gap: 9px; margin-right: 20px; }
:has(> [data-testid="stHeaderLogo"])::after { content: "vlprobe"; font-size: 19px; font-weight: 700;
  letter-spacing: -.01em; color: var(--vp-ink); }
[data-testid="stHeaderLogo"] { height: 22px; width: 26px; }
[data-testid="stTopNavLink"] { padding: 6px 12px; border-radius: 8px; }
[data-testid="stTopNavLink"] p { font-size: 15.5px; color: var(--vp-quiet); font-weight: 500; }
:is([data-testid="stTopNavLink"][aria-current],
  [data-testid="stApp"]:has(.st-key-way_back) [data-testid="stTopNavLink"][href$="/lab"]) {
  background: var(--vp-press-tint); }
:is([data-testid="stTopNavLink"][aria-current],
  [data-testid="stApp"]:has(.st-key-way_back) [data-testid="stTopNavLink"][href$="/lab"]) p {
  color: var(--vp-press); font-weight: 600; }
[data-testid="stApp"]:has(.st-key-way_back) [data-testid="stSidebarNavLink"][href$="/lab"] {
  background: var(--vp-press-tint); }
.st-key-way_back { flex-wrap: nowrap; gap: 6px; margin-bottom: -8px; }
.st-key-way_back p { font-size: 15px; margin: 0; }
.st-key-way_back a { padding: 0; } .st-key-way_back a p { color: var(--vp-press); font-weight: 600; }
/* On a phone: the button that opens the menu says so. */
[data-testid="stExpandSidebarButton"] { width: auto; gap: 6px; }
[data-testid="stExpandSidebarButton"] > span { display: none; }
[data-testid="stExpandSidebarButton"]::before { content: "menu" / ""; font: 24px/1 "Material Symbols Rounded"; }
[data-testid="stExpandSidebarButton"]::after { content: "Menu"; font-size: 15.5px; font-weight: 600; }
@media (max-width: 640px) {
  [data-testid="stHeader"] [data-testid="stToolbar"] { padding-left: 12px; padding-right: 8px; } }
/* The search is in the header, which Streamlit keeps for itself; its keys need no room. */
.st-key-lookup { position: fixed; z-index: 999990; top: 11px; width: auto;
  right: max(72px, (100vw - var(--vp-page)) / 2 + 72px); }
[data-testid="stElementContainer"]:has(.st-key-lookup_keys), .st-key-lookup_keys { position: absolute; height: 0; }
.st-key-documentation code { overflow-wrap: anywhere; }
.st-key-home { padding-top: 16px; }
.st-key-doors a :is(span, p) { white-space: normal; }
.st-key-home_sets a { background: none; padding-inline: 4px; } .st-key-home_sets { gap: 4px 10px; }
.st-key-home_foot a p { color: var(--vp-press); font-weight: 600; }
.vp-published, .vp-credit { font-size: 14px; margin: .15rem 0; }
.vp-published a, .vp-credit a { color: inherit; }
.vp-quiet, .vp-card small, .vp-table small, .vp-facts dt {
  color: var(--vp-quiet); font-weight: 400; }
.vp-small { font-size: .9rem; }
.vp-pair { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere; }
.vp-line { border: 0; border-top: 1px solid var(--vp-line); margin: .2rem 0; }
.vp-mark { vertical-align: -2px; flex: none; }
[class*="st-key-card_"] { position: relative; padding: 10px 14px 12px; gap: .2rem; border-color: var(--vp-line); }
[class*="st-key-card_"]:has(input:checked) { background: var(--vp-press-tint); border-color: var(--vp-press); }
[class*="st-key-card_"] [data-testid="stCheckbox"] label::after {
  content: ""; position: absolute; inset: 0; z-index: 1; }
[class*="st-key-card_"] [data-testid="stElementContainer"]:has([data-testid="stCheckbox"]),
[class*="st-key-card_"] [data-testid="stCheckbox"], [class*="st-key-card_"] label { position: static; }
[class*="st-key-card_"] .vp-quiet { margin: 0; }
.vp-card-title { display: block; margin: -29px 0 4px 28px; line-height: 1.5; }
[data-testid="stBottomBlockContainer"]:has(.st-key-run_bar) { padding-top: 10px; padding-bottom: 18px; }
[data-testid="stBottom"]:has(.st-key-run_bar) { border-top: 1px solid var(--vp-line); }
@media (max-width: 640px) {
  [data-testid="stBottomBlockContainer"]:has(.st-key-run_bar) { padding-bottom: 10px; } }
.st-key-run_bar p { margin: 0; }
/* Jobs that ended while somebody was on another page: above all, at the lower right. */
.st-key-notices { position: fixed; right: 24px; bottom: 24px; z-index: 999990; gap: 8px;
  width: min(400px, 100vw - 32px); }
[data-testid="stApp"]:has([data-testid="stBottom"]) .st-key-notices { bottom: 96px; }
[class*="st-key-notice_"] { background: var(--vp-bg); border: 1px solid var(--vp-edge); border-radius: 10px;
  padding: 12px 16px 8px; box-shadow: 0 8px 28px var(--vp-shade); gap: 4px; }
[class*="st-key-notice_"] a { padding: 0; } [class*="st-key-notice_"] a p { color: var(--vp-press); font-weight: 600; }
@media (max-width: 640px) { .st-key-notices { right: 16px; bottom: 16px; } }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {
  color: var(--vp-quiet) !important; opacity: 1; }
.vp-quiet, .vp-job { margin: 0; overflow-wrap: anywhere; }

[data-testid="stBaseButton-primary"]:enabled, [data-testid="stBaseButton-primary"]:enabled p {
  color: light-dark(#ffffff, #12161d); }
[data-testid="stMultiSelectTagsContainer"] [data-tag] { background: var(--vp-bg); color: var(--vp-ink); }
[data-testid="stMultiSelectTagsContainer"] [data-tag]:not(.st-key-with *) {
  box-shadow: inset 0 0 0 1px var(--vp-edge); }
[data-testid="stMultiSelectTagsContainer"] [data-tag] svg { color: var(--vp-quiet); }
[data-testid="stSelectbox"] input { text-overflow: ellipsis; }
[data-testid="stSelectboxVirtualDropdown"] { width: max-content !important; min-width: var(--trigger-width);
  max-width: min(520px, 100vw - 32px); }
/* Streamlit tints a focused link and recolors the thin border of a focused field, which is hard to see. */
:is([data-testid="stPageLink-NavLink"], [data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]):focus-visible,
:is([data-testid="stTextInputRootElement"], [data-testid="stTextAreaRootElement"],
  [data-testid="stNumberInputContainer"], .react-aria-ComboBox > [role="group"]):has(
  :is(input, textarea):focus-visible) {
  outline: 2px solid var(--vp-press); outline-offset: 1px; }
small { font-size: max(13px, .8333em); }
.st-key-lab_subject > :first-child { flex-grow: 1.8; }
/* On phones the controls stay in one row: pickers share its width, presses show their icon. */
@media (max-width: 640px) {
  :is(.st-key-talk, .st-key-play_bar, .st-key-sentence) { flex-wrap: nowrap; }
  .st-key-play_bar { gap: 6px; } .st-key-play_bar label { padding-left: 8px; padding-right: 8px; }
  .st-key-talk > :has([data-testid="stSelectbox"]) { flex: 1 1 0; min-width: 0; width: auto !important; }
  .st-key-play_bar > :has([data-testid="stSpace"]) { flex: 1 1 0; min-width: 0; }
  :is(.st-key-another, .st-key-offline_file, .st-key-clock, .st-key-new_round, .st-key-quiz_questions,
    .st-key-quiz_room, .st-key-measured) button p {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  :is(.st-key-quiz_questions, .st-key-quiz_room, .st-key-measured) button > div > div[aria-hidden] { display: none; }
  :is(.st-key-another, .st-key-offline_file, .st-key-clock, .st-key-new_round, .st-key-quiz_questions,
    .st-key-quiz_room, .st-key-measured) button { min-width: 38px; border: 1px solid var(--vp-edge); padding: 0 6px; }
}

.vp-scroll { overflow-x: auto; max-width: 100%; --vp-cut: light-dark(rgb(20 27 38 / .2), rgb(230 233 239 / .2));
  background: linear-gradient(to right, var(--vp-bg) 40%, transparent) left / 36px 100% no-repeat local,
    linear-gradient(to left, var(--vp-bg) 40%, transparent) right / 36px 100% no-repeat local,
    linear-gradient(to right, var(--vp-cut), transparent) left / 12px 100% no-repeat scroll,
    linear-gradient(to left, var(--vp-cut), transparent) right / 12px 100% no-repeat scroll; }
.vp-table { border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.35; }
.vp-table th, .vp-table td { padding: .5rem .7rem .5rem 0; text-align: left; vertical-align: top; }
.vp-table thead th { font-weight: 600; border-bottom: 2px solid var(--vp-strong-line); vertical-align: bottom; }
.vp-table tbody tr { border-top: 1px solid var(--vp-line); }
.vp-table tbody th { font-weight: 500; min-width: 9rem; }
.vp-table tbody th.vp-metric { font-weight: 600; min-width: 10.5rem; max-width: 20rem; }
.vp-table tbody tr.first { border-top: 1px solid var(--vp-strong-line); }
.vp-table td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.vp-table td.vp-metric { white-space: normal; min-width: 14rem; }
.vp-table .value { font-size: 1.05rem; }
.vp-table.vp-prose td { white-space: normal; overflow-wrap: break-word; }
@media (max-width: 1100px) {
  .vp-prose thead { display: none; }
  .vp-prose tbody :is(tr, th, td) { display: block; padding: 0; }
  .vp-prose tbody tr { padding: .6rem 0; }
  .vp-prose td::before { content: attr(data-title); display: block; margin-top: .3rem; font-size: 13px;
    color: var(--vp-quiet); }
}

.vp-paper thead th { padding-right: .9rem; }
.vp-paper td small { font-size: 13px; }
.vp-paper thead tr:first-child th[colspan] { border-bottom: 1px solid var(--vp-line); }
.vp-paper tr.band th { padding-top: 1rem; font-weight: 600; border-bottom: 1px solid var(--vp-strong-line); }
.vp-paper tr.printed :is(th, td) { color: var(--vp-quiet); padding-top: .25rem; padding-bottom: .25rem; }
.vp-paper tbody th[scope="row"] { position: sticky; left: 0; background: var(--vp-bg); }
.vp-paper sup { line-height: 0; margin-left: .1em; }
.vp-notes { margin: 0; padding-left: 1.6rem; font-size: .9rem; line-height: 1.45; }

.vp-compared { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 0 2rem; }
.vp-compared ul { margin: 0 0 .4rem; padding-left: 1.2rem; }
.vp-compared p { margin: 0 0 .4rem; }

.vp-missing { aspect-ratio: 4 / 3; display: grid; place-items: center; text-align: center; padding: 1rem;
  border: 1px dashed #7b8696; border-radius: .5rem; overflow-wrap: anywhere; }
.vp-card p { margin: 0 0 .55rem; }
.vp-card p.vp-verdict { font-size: 1.05rem; margin-bottom: .3rem; }
.vp-captions p { display: grid; grid-template-columns: 92px 1fr; column-gap: 8px; margin: 0 0 5px; font-size: 18px;
  line-height: 1.4; }
.vp-told { min-width: 0; overflow-wrap: anywhere; }
.vp-role { font-size: 13.5px; font-weight: 650; padding-top: 4px; }
.vp-role-true, .vp-role-same { color: var(--vp-true); } .vp-role-lie { color: var(--vp-lie); }
.vp-role-tie { color: var(--vp-tie); } .vp-role-quiet { color: var(--vp-quiet); }
.vp-changed { background: var(--vp-soft); font-weight: 650; padding: .02em .22em; border-radius: .2em; }
.vp-strip { display: grid; grid-template-columns: repeat(5, 1fr); gap: 3px; margin: 0 0 .55rem; }
.vp-strip img { width: 100%; aspect-ratio: 4 / 3; object-fit: contain; background: var(--vp-mat); border-radius: 2px;
  border: 2px solid transparent; }
.vp-strip img.vp-right { border: 2px solid var(--vp-true); }
.vp-strip img.vp-new { border: 2px dashed var(--vp-tie); }
.vp-matrix { margin-bottom: .6rem; }
.vp-scores td.vp-own { font-weight: 600; background: var(--vp-soft); }
.vp-t, .vp-l, .vp-caption del, .vp-caption ins { padding: 0 .2em; border-radius: .2em; }
.vp-t, .vp-caption del { background: var(--vp-true-tint); color: var(--vp-true); font-weight: 650;
  text-decoration: none; }
.vp-l, .vp-caption ins { background: var(--vp-lie-tint); color: var(--vp-lie); font-weight: 650;
  text-decoration: underline wavy 1.5px; text-underline-offset: .2em; text-decoration-skip-ink: none; }
.vp-fooled, .vp-fooled strong { color: var(--vp-lie); }
.vp-tied, .vp-tied strong { color: var(--vp-tie); }
.vp-held, .vp-held strong { color: var(--vp-true); }
.vp-scores { width: 100%; border-collapse: collapse; font-size: .82rem; }
.vp-scores th, .vp-scores td { padding: .15rem 0 .15rem .6rem; text-align: right; font-variant-numeric: tabular-nums; }
.vp-scores th:first-child { text-align: left; font-weight: 500; padding-left: 0; overflow-wrap: anywhere; }
.vp-scores thead th, .vp-scores thead th:first-child { color: var(--vp-quiet); font-weight: 400; }
.vp-scores td { white-space: nowrap; }
.vp-chips { display: flex; flex-wrap: wrap; gap: .3rem; margin: .4rem 0; }
.vp-chip { border: 1px solid var(--vp-strong-line); border-radius: 1rem; padding: 0 .6em; font-size: .82rem; }
.vp-note { border-left: 3px solid var(--vp-strong-line); padding-left: .6rem; margin: .4rem 0; font-size: .9rem;
  white-space: pre-line; overflow-wrap: anywhere; }
.vp-scores tr.vp-apart > * { border-top: 1px solid var(--vp-line); font-weight: 600; }
.vp-words { line-height: 1.25; margin: 0 0 .4rem; }
.vp-word { display: inline-block; text-align: center; padding: .1rem .3rem; border-radius: .2rem;
  vertical-align: top; overflow-wrap: anywhere; color: light-dark(#1c2330, #f2f4f8); }
.vp-word small { display: block; color: inherit; font-size: 13px; font-variant-numeric: tabular-nums; }
.vp-ramp { display: inline-block; width: 8rem; max-width: 40%; height: .8em; vertical-align: baseline;
  border: 1px solid var(--vp-strong-line); }
.vp-glance { margin: 0 0 .5rem; line-height: 1.3; }
.vp-glance p { margin: 0 0 .25rem; overflow-wrap: anywhere; }
.vp-track { position: relative; height: 3.4rem; border-radius: .4rem; background: var(--vp-mat); }
.vp-track b { position: absolute; left: 50%; top: 0; bottom: 0; width: 2px; margin-left: -1px;
  background: currentColor; }
.vp-track i { position: absolute; transform: translate(-50%, -50%); font-style: normal; line-height: 1;
  cursor: default; }
.vp-ends { display: flex; justify-content: space-between; margin: 0; font-size: .8rem; color: var(--vp-quiet); }
.vp-play { border-collapse: collapse; width: 100%; font-size: .95rem; }
.vp-play th, .vp-play td { padding: .45rem .8rem .45rem 0; text-align: left; vertical-align: top; font-weight: 400; }
.vp-play thead th { font-weight: 500; vertical-align: bottom; border-bottom: 2px solid var(--vp-strong-line); }
.vp-play tbody tr { border-top: 1px solid var(--vp-line); }
.vp-play tbody tr.band { border-top: 1px solid var(--vp-strong-line); }
.vp-play tbody tr.band th { padding-top: 1.1rem; }
.vp-play tbody tr.band strong { font-size: 1.05rem; }
.vp-mixed :is(thead th:first-child, tbody th) { min-width: 13rem; }
.vp-play td { width: 9.5rem; min-width: 8rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.vp-play td small { white-space: normal; display: block; }
.vp-play small { color: var(--vp-quiet); }
.vp-gap { position: relative; display: block; height: .45rem; margin: .3rem 0 .2rem; border-radius: .2rem;
  background: var(--vp-mat); }
.vp-gap::after { content: ""; position: absolute; left: 50%; top: -.15rem; bottom: -.15rem; width: 1px;
  background: var(--vp-quiet); }
.vp-gap i { position: absolute; top: 0; bottom: 0; min-width: 2px; border-radius: .2rem; background: currentColor; }
.st-key-play_picture img, .st-key-play_mix img { height: 20rem; object-fit: contain; background: var(--vp-mat); }
@media (max-width: 640px) {
  .vp-mixed tbody th { min-width: 0; }
  .vp-play thead { display: none; }
  .vp-play tbody tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; }
  .vp-play tbody th { flex: 1 0 100%; padding-bottom: 0; }
  .vp-play td { flex: 1 1 6rem; min-width: 6rem; width: auto; padding-right: 0; }
  .vp-play td::before { content: attr(data-model); display: block; font-size: .8rem; color: var(--vp-quiet);
    white-space: normal; overflow-wrap: anywhere; }
}
.vp-facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; font-size: .92rem; }
.vp-facts dd { margin: 0; overflow-wrap: anywhere; }
</style>"""


def style(theme: str | None) -> str:
    """The style, and the theme for what Streamlit puts outside of the app's own element: a dialog would stay light."""
    return (
        f"{STYLE}<style>:root {{ color-scheme: {theme}; }}</style>"
        if theme in ("light", "dark")
        else STYLE
    )
