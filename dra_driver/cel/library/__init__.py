"""The functions of the language, a module a library. `table.functions` gives those of an environment."""
