"""Guesses of how a text goes on, and how many runs they save."""

import pytest
from tacit.session.drafts import Guesses, NGrams, agreed, runs_of


def test_a_text_goes_on_as_it_did_before() -> None:
    draft = NGrams()
    assert draft.propose([1, 2, 3, 4, 1, 2], 3) == [3, 4, 1]
    # The last place with the longest end decides.
    assert draft.propose([1, 2, 5, 1, 2, 6, 9, 2], 1) == [6]
    assert draft.propose([7, 1, 2, 5, 8, 1, 2, 6, 7, 1, 2], 2) == [5, 8]
    assert draft.propose([1, 2, 3], 2) == []
    assert draft.propose([1, 1], 3) == [1, 1, 1]
    assert draft.propose([1, 1], 0) == []


def test_other_texts_are_asked_for_what_is_new() -> None:
    draft = NGrams([[1, 2, 3], [1, 2, 4], [5, 2, 4]])
    assert draft.propose([9, 2], 1) == [4]
    assert draft.propose([2, 8, 2], 1) == [8], "the text itself comes first"
    # A longer end in another text says more than a shorter one in this.
    assert draft.propose([2, 8, 5, 2], 1) == [4]
    assert draft.propose([9], 1) == []
    draft.learn([7, 9, 3])
    assert draft.propose([9], 1) == [3]


@pytest.mark.parametrize(
    ("proposed", "found", "right"),
    [([], [5], 0), ([5, 6], [5, 6, 7], 2), ([5, 6], [5, 9, 7], 1), ([5, 6], [9, 6, 7], 0), ([5, 6], [5], 1)],
)
def test_guesses_are_right_up_to_the_first_wrong_one(proposed: list[int], found: list[int], right: int) -> None:
    # What is left of an answer may be shorter than the guesses.
    assert agreed(proposed, found) == right


def test_runs_are_counted_as_they_would_be_made() -> None:
    prompt, answer = [1, 2, 3, 4, 5], [1, 2, 3, 9, 1, 2, 3]
    # The first run has the prompt's last token and guesses 1 (nothing is known of 5): none. Then 1: 2 3 4, of which two
    # are right and 9 is learnt; 9 is new; behind it 1 with 2 3 and 9.
    assert runs_of(Guesses(NGrams(), 4), prompt, answer) == 4
    assert runs_of(Guesses(NGrams(), 2), prompt, [7] * 4) == 3

    class Nothing:
        def propose(self, ids: list[int], count: int) -> list[int]:
            assert ids[: len(prompt)] == prompt and 0 <= count < 4
            return []

    assert runs_of(Guesses(Nothing(), 4), prompt, answer) == len(answer)
