"""What `tacit plan` says of ways that were not chosen."""

from typing import Any

from tacit.cli.plan import reason, runner_up


def way(choice: str, slower: float, rounds: int, size: int = 1000, chosen: bool = False) -> dict[str, Any]:
    """A way to run a layer, as the planner reports it."""
    return {"choice": choice, "slower": slower, "rounds": rounds, "bytes": size, "chosen": chosen}


def test_ways_are_compared_with_the_chosen_one():
    chosen = way("chain", 0.010, 6, chosen=True)
    slower, quicker = way("digits2", 0.030, 9, size=3000), way("digits4", 0.0, 10, size=500)
    assert reason(slower, chosen) == "+20.0 ms (+2.00 kB, +3 rounds)"
    assert reason(quicker, chosen) == "-10.0 ms (-500 B, +4 rounds)"
    assert reason(chosen, chosen) == reason(way("masked", 0.00999, 6), chosen) == "+0.0 ms (+0 B, +0 rounds)"
    assert runner_up([slower, chosen, quicker]) == "digits4: -10.0 ms (-500 B, +4 rounds)"
    assert runner_up([chosen]) == ""
    assert runner_up([slower]) == ""
