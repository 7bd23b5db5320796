"""How commands write text, where nobody says."""

import pytest
from tacit.cli.pair import PlannedPairOptions
from tacit.cli.writing import FAR_PASS, suited_pass
from tacit.data.decoding import Decoding, Steps
from tacit.data.text import Text


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (PlannedPairOptions(), 1),
        (PlannedPairOptions(network="lan"), 1),
        (PlannedPairOptions(network="wan"), FAR_PASS),
        (PlannedPairOptions(network="5ms,100"), FAR_PASS),
        (PlannedPairOptions(network="wan", pass_inputs=1), 1),
        (PlannedPairOptions(network="lan", pass_inputs=8), 8),
        (PlannedPairOptions(network="wan", offline=2), 1),
    ],
)
def test_prompts_are_read_in_passes_over_far_links(options: PlannedPairOptions, wanted: int) -> None:
    stepped = Text("{}", 1, "next", decoding=Decoding(steps=Steps(8, 4)))
    assert suited_pass(options, stepped) == wanted
    windowed = Text("{}", 8, "next", decoding=Decoding())
    assert suited_pass(options, windowed) == (options.pass_inputs or 1)
