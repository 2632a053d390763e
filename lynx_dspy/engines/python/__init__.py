"""Programs in Python over DataFrames: guard, static check and mends, sandbox, results.

frames.py     the database: a folder of files, and `execute`
guard.py      what a program may not do by its text; check.py, mend.py: names and columns
sandbox.py    this side of the wall; zygote.py, child.py, confine.py: the other side
reading.py    what comes back over it
"""
