"""The report's looks."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1d21; margin: 0; background: #fff }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem }
h1 { font-size: 1.7rem; line-height: 1.2 }
h2 { margin-top: 2.6rem; border-bottom: 2px solid #0b6e4f; padding-bottom: .2rem }
h3 { margin-bottom: .3rem } .small { font-size: .82rem; color: #555 }
table { border-collapse: collapse; font-size: .84rem; margin: .6rem 0; width: 100% }
th, td { text-align: left; padding: .18rem .5rem; border-bottom: 1px solid #e3e5e8; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } td.n { white-space: nowrap }
th { vertical-align: bottom; font-weight: 600 }
tr.missed td:last-child, .bad { color: #b3261e; font-weight: 600 } tr.met td:last-child { color: #0b6e4f }
tr.ours td:first-child { color: #0b6e4f; font-weight: 600 }
svg { max-width: 100%; height: auto } figure { margin: .6rem 0 } figcaption { font-size: .82rem; color: #555 }
.row { display: flex; flex-wrap: wrap; gap: 1rem } .row > figure { flex: 1 1 26rem; min-width: 0 }
.key { background: #f2f7f5; border-left: 4px solid #0b6e4f; padding: .6rem 1rem } details { margin: .5rem 0 }
summary { cursor: pointer; color: #0b6e4f }
"""
