// What may be known of the models: the server's file model.json.

/** The models of the server. */
export async function models() {
  const response = await fetch("model.json");
  if (!response.ok) throw new Error(`the server does not show its models (${response.status})`);
  return (await response.json()).models;
}

/** How pictures become inputs of a model; null for a model that takes none. Small grey inputs need no word of the compiler's. */
export function preprocessingOf({ preprocessing, input }) {
  if (preprocessing) return preprocessing;
  const [channels, height, width] = input.shape.length === 3 ? input.shape : [];
  if (channels !== 1 || height !== width || input.encoding !== "scaled" || input.range[0] < 0) return null;
  return { resize: height, crop: height, channel_order: "L", scale: (input.range[1] * input.scale) / 255 };
}

/** The side of a model's square grey pictures that may be drawn by hand; null for other models. */
export function drawable(model) {
  if (model.text !== null) return null;
  const preprocessing = preprocessingOf(model);
  const [channels, height, width] = model.input.shape;
  return preprocessing?.channel_order === "L" && channels === 1 && height === width && height <= 64 ? height : null;
}

/** Numbers of one input. */
export const length = ({ input }) => input.shape.reduce((all, side) => all * side, 1);

/** Layers as they run, the result's last. */
export const layersOf = ({ layers }) => [...layers.map(({ name, operator }) => ({ name, operator })), { name: "result", operator: "" }];
