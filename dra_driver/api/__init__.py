"""The objects of the Kubernetes API that the driver reads and writes, their text forms and their rules.

Everything here is pure. Class names are those of Kubernetes' Go types, fields are the JSON names in snake case.
An absent field is what it is in Go: `None` where Go has a pointer, else "", 0, False, () or {}.
"""
