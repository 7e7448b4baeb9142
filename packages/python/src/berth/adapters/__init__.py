"""Sandbox providers for agent frameworks, a module for each. Import the one you use, and install its extra:
`pip install "berth-sdk[langchain]"`. Nothing here is imported by `import berth`."""
