#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Validates results.json files against docs/results-schema.json: validate_results.py FILE...; exit 0 if all are valid."""
import json
import pathlib
import sys

import jsonschema

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"


def problems(document, schema_name="results-schema.json"):
    """What is wrong with a parsed results.json, one line each."""
    schema = json.loads((DOCS / schema_name).read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return [f"{'/'.join(map(str, e.absolute_path)) or 'document'}: {e.message}"
            for e in validator(schema).iter_errors(document)]


def main():
    found = False
    for name in sys.argv[1:]:
        for problem in problems(json.loads(pathlib.Path(name).read_text())):
            print(f"{name}: {problem}", file=sys.stderr)
            found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
