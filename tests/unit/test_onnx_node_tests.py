"""The page of ONNX's own tests says what comes out of them, as far as a part of them shows."""

import onnx_node_tests
import pytest

MODULES = ("relu", "softmax", "gelu", "flatten", "globalaveragepool", "maxpool", "transpose", "dequantizelinear")


@pytest.fixture(scope="module")
def listed():
    rows = [line.split(" | ") for line in onnx_node_tests.PAGE.read_text().splitlines() if line.startswith("| test_")]
    return {row[0].removeprefix("| "): row[1] for row in rows}


def test_nothing_is_wrong(listed):
    assert onnx_node_tests.WRONG not in listed.values()
    assert list(listed.values()).count(onnx_node_tests.PASSED) > 150


def test_a_part_of_the_page_is_up_to_date(listed):
    cases = onnx_node_tests.cases(MODULES)
    assert len(cases) > 30
    found = {name: onnx_node_tests.run(name, case).state for name, case in cases.items()}
    assert found == {name: listed[name] for name in found}
