"""The page of operators says what the converters say."""

import operators_page
from tacit.importers.classical import CLASSICAL
from tacit.importers.onnx import KNOWN


def test_the_page_is_up_to_date():
    assert operators_page.PAGE.read_text() == operators_page.page()


def test_every_operator_is_explained():
    rows = [line for line in operators_page.page().splitlines() if line.startswith("| ") and "operator |" not in line]
    assert {row.split(" | ")[0].removeprefix("| ") for row in rows} >= {*KNOWN, *CLASSICAL}
    assert all(len(row.split(" | ")[1]) > len("read: .") for row in rows)
