# Written by `npm run gen` from berth/_async: do not edit.
"""The library for programs that wait where they stand."""
