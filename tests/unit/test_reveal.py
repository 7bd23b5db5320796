"""What clients learn, as commands and servers say it."""

import numpy as np
import pytest
from tacit.errors import MisuseError
from tacit.session.reveal import Reveal, buckets, is_reveal
from tacit.session.terms import Terms


def test_words_and_edges_become_options_of_the_core():
    assert Reveal.of("score").options() == {"reveal": "output"}
    assert Reveal.of("label").options() == {"reveal": "label"}
    assert Reveal.of("bucket:-1,0.5, 2e3").options() == {"reveal": "bucket", "edges": [-1.0, 0.5, 2000.0]}
    planned = Terms(reveal="bucket:0").options()
    assert (planned["settings"]["reveal"], planned["edges"]) == ("bucket", [0.0])


@pytest.mark.parametrize("text", ["", "all", "bucket", "bucket:", "bucket:a", "bucket:1,,2", "label:1", "score:0"])
def test_other_words_are_refused(text):
    assert not is_reveal(text)
    with pytest.raises(MisuseError, match="one of output, label, probability, score"):
        Reveal.of(text)


@pytest.mark.parametrize("edges", ["1,1", "2,1", "nan", "0,inf"])
def test_edges_rise_and_are_finite(edges):
    with pytest.raises(MisuseError, match="each above the one before"):
        Reveal.of(f"bucket:{edges}")


def test_labels_of_the_interpreters_integers():
    scores = np.array([[-3], [0], [1], [2], [7]])
    assert Reveal.of("bucket:-1,0.5,3").labels(scores, 0.5).tolist() == [0, 1, 2, 2, 3]
    assert Reveal.of("label").labels(scores, 1.0).tolist() == [0, 0, 1, 1, 1]
    two = np.array([[3, -3], [-1, 1]])
    assert Reveal.of("bucket:0").labels(two, 1.0).tolist() == [0, 1]
    assert Reveal.of("label").labels(two, 1.0).tolist() == [0, 1]


def test_a_public_graph_tells_how_many_buckets_there_are():
    graph = {"output": 3, "nodes": [{"op": "offset", "output": 2}, {"op": {"bands": {"edges": 4}}, "output": 3}]}
    assert buckets(graph) == 5
    assert buckets({**graph, "output": 2}) == 0
