"""Formulaic alphas: operators on panels of stocks, formulas over them, and what goes with them.

The operators and alphas are those of Z. Kakushadze, "101 Formulaic Alphas" (2015), which the LYNX
paper's finance case computes (V-A, VII-E). `docs/how-to/finance.md` is the way in.
"""
