"""The dashboards, as code. `make dashboards` writes them to *.json beside this file.

`panels` says what a panel has to have; `overview`, `privacy`, `learning` and `store` are a
dashboard each.
"""
