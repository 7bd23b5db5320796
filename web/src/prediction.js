// What a session gave, as callers read it.

/** The first largest of the integers from `start` on. */
function largest(outputs, start, columns) {
  let best = 0;
  for (let at = 1; at < columns; at += 1) {
    if (outputs[start + at] > outputs[start + best]) best = at;
  }
  return best;
}

/** The unit of each value of one result. */
function units(parts, columns) {
  if (!parts?.length) return new Float64Array(columns).fill(1);
  const size = (part) => part.shape.reduce((all, side) => all * side, 1);
  return Float64Array.from(
    parts.flatMap((part) =>
      Array.from({ length: size(part) }, (_, at) => (part.unit ?? 1) * (part.units?.length ? part.units[at] : 1)),
    ),
  );
}

/** Classes and logits of an answer, with its report. */
export function prediction({ outputs, columns, report: json }) {
  const report = JSON.parse(json);
  const rows = columns === 0 ? 0 : outputs.length / columns;
  const revealsLogits = report.reveal === "output";
  const classes = Array.from({ length: rows }, (_, row) =>
    revealsLogits ? largest(outputs, row * columns, columns) : Number(outputs[row * columns]),
  );
  if (!revealsLogits) return { classes, logits: null, outputs, report };
  const unit = units(report.plan.graph.outputs, columns);
  const logits = Array.from({ length: rows }, (_, row) =>
    Float64Array.from({ length: columns }, (_, at) => Number(outputs[row * columns + at]) * report.output_scale * unit[at]),
  );
  return { classes, logits, outputs, report };
}
