"""The few rules of style that Streamlit's theme does not have. Colours are pairs: for light, for dark."""

STYLE = """<style>
:root {
  --vp-quiet: light-dark(#566173, #a7b1c0);
  --vp-line: light-dark(#dde2e9, #2f3844);
  --vp-strong-line: light-dark(#aeb8c6, #556072);
  --vp-mat: light-dark(#eef1f5, #0c0f14);
}
.vp-quiet, .vp-card small, .vp-table small, .vp-reading small, .vp-facts dt {
  color: var(--vp-quiet); font-weight: 400; }
.vp-small { font-size: .9rem; }
.vp-quiet, .vp-job { margin: 0; overflow-wrap: anywhere; }

[data-testid="stMultiSelectTagsContainer"] [data-tag] { color: light-dark(#ffffff, #12161d); }

.vp-scroll { overflow-x: auto; max-width: 100%; }
.vp-table { border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.35; }
.vp-table th, .vp-table td { padding: .5rem .7rem .5rem 0; text-align: left; vertical-align: top; }
.vp-table thead th { font-weight: 600; border-bottom: 2px solid var(--vp-strong-line); vertical-align: bottom; }
.vp-table tbody tr { border-top: 1px solid var(--vp-line); }
.vp-table tbody th { font-weight: 500; min-width: 7rem; }
.vp-table tbody th.vp-metric { font-weight: 600; min-width: 10.5rem; max-width: 20rem; }
.vp-table tbody tr.first { border-top: 1px solid var(--vp-strong-line); }
.vp-table td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.vp-table .value { font-size: 1.05rem; }

.vp-reading p { margin: 0 0 .8rem; }
.vp-reading strong { overflow-wrap: anywhere; }
.vp-welcome { max-width: 44rem; }

.st-key-cards img { aspect-ratio: 4 / 3; object-fit: contain; background: var(--vp-mat); }
.st-key-bigger img { max-height: 50vh; object-fit: contain; background: var(--vp-mat); }
.vp-missing { aspect-ratio: 4 / 3; display: grid; place-items: center; text-align: center; padding: 1rem;
  border: 1px dashed #7b8696; border-radius: .5rem; overflow-wrap: anywhere; }
.vp-card p { margin: 0 0 .55rem; }
.vp-card p.vp-verdict { font-size: 1.05rem; margin-bottom: .3rem; }
.vp-caption { line-height: 1.4; overflow-wrap: anywhere; }
.vp-caption del, .vp-caption ins { padding: 0 .2em; border-radius: .2em; }
.vp-caption del { background: light-dark(#fbdcdc, #5a2328); color: light-dark(#8c1420, #ffc9c9); }
.vp-caption ins { background: light-dark(#d5f0de, #1b4a30); color: light-dark(#0a5a30, #b6f2cd); }
.vp-caption ins { text-decoration: underline; }
.vp-card small .vp-higher { font-weight: 600; color: light-dark(#1c2330, #e6e9ef); white-space: nowrap; }
.vp-fooled, .vp-fooled strong { color: light-dark(#a61b29, #ff9d9d); }
.vp-tied, .vp-tied strong { color: light-dark(#7a5200, #f0c36d); }
.vp-held, .vp-held strong { color: light-dark(#0b6b3a, #7ddba3); }
.vp-scores { width: 100%; border-collapse: collapse; font-size: .82rem; }
.vp-scores th, .vp-scores td { padding: .15rem 0 .15rem .6rem; text-align: right; font-variant-numeric: tabular-nums; }
.vp-scores th:first-child { text-align: left; font-weight: 500; padding-left: 0; overflow-wrap: anywhere; }
.vp-scores thead th, .vp-scores thead th:first-child { color: var(--vp-quiet); font-weight: 400; }
.vp-scores td { white-space: nowrap; }
.vp-facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; font-size: .92rem; }
.vp-facts dd { margin: 0; overflow-wrap: anywhere; }
</style>"""
