"""The table of errors of a room: what is called, and what its error has to say.

``{InputError: [(call, "a.csv: … give one"), (call, "not UTF-8", {"line": 2})]}``: the class, the
call, fragments of the text of the error in their order with ``…`` between them, and fields of the
error.
"""

import re

import pytest


def rows(table):
    """Parametrize a test by the rows of a table."""
    cases = [
        pytest.param(call, kind, told, dict(*fields), id=f"{kind.__name__}-{told}")
        for kind, some in table.items()
        for call, told, *fields in some
    ]
    return pytest.mark.parametrize(("call", "kind", "told", "fields"), cases)


def check(call, kind, told, fields):
    """Check that the call raises just that."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert type(error) is kind, "a class above the one of the table"
    assert re.search(".*".join(map(re.escape, told.split("…"))), str(error), re.DOTALL), str(error)
    assert {name: getattr(error, name) for name in fields} == fields
