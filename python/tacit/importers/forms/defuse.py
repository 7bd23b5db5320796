"""Which operators are written as several plain ones before anything else, and how."""

from collections.abc import Mapping

import onnx

from tacit.importers.fold import keep
from tacit.importers.forms.fused import FUSED, Plain, Rule
from tacit.importers.forms.fused_attention import ATTENTION, OWN_ATTENTION
from tacit.importers.forms.graph import EXTRA, OWN
from tacit.importers.guard import guarded

RULES: Mapping[str, Mapping[str, Rule]] = {
    EXTRA: {**FUSED, **ATTENTION},
    **dict.fromkeys(OWN, OWN_ATTENTION),
}
"""Rules by domain and operator."""


def defuse(model: onnx.ModelProto) -> None:
    """Write fused operators as plain ones, in place; raises `UnsupportedError` for what has no plain form."""
    if not any(node.op_type in RULES.get(node.domain, ()) for node in model.graph.node):
        return
    graph = Plain(model)
    for node in model.graph.node:
        rule = RULES.get(node.domain, {}).get(node.op_type)
        if rule is None:
            graph.keep(node)
        else:
            with guarded(node.name, node.op_type):
                rule(graph, node)
    keep(model, graph.nodes)
    del model.graph.value_info[:]
