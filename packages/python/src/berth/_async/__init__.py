"""The library for programs with async. `_sync` is made from these files by `npm run gen`."""
