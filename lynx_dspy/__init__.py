"""LYNX as a DSPy program: ask a database a question, get a verified program."""
