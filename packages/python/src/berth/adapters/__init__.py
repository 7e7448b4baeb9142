"""Sandbox providers for agent frameworks, a module for each. Import the one you use, and install the library
with its extra, as docs/guides/frameworks.md says. Nothing here is imported by `import berth`."""
