"""From a PyTorch model to level G: capture, the operator table, the importer and the Dynamo backend.

This package is the only one that imports torch at module level, so nothing below it or beside it imports it eagerly.
"""
