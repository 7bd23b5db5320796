// Resizing of 8-bit pixels as Pillow resizes them: a separable filter whose support grows with the picture, in fixed point,
// each of two passes rounded to 8 bits.

/** Bits after the point of a weight. */
const BITS = 22;

const FILTERS = {
  bilinear: { support: 1, at: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { support: 2, at: cubic },
};

/** The cubic of Keys with a = -1/2. */
function cubic(signed) {
  const [x, a] = [Math.abs(signed), -0.5];
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/** For each pixel of the result where its window of the source begins, and the weights there. */
function weights(from, to, { support, at }) {
  const scale = from / to;
  const stretched = Math.max(scale, 1);
  const reach = support * stretched;
  return Array.from({ length: to }, (_, place) => {
    const centre = (place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - reach + 0.5));
    const last = Math.min(from, Math.trunc(centre + reach + 0.5));
    const inverse = 1 / stretched;
    const real = Array.from({ length: last - first }, (_, x) => at((x + first - centre + 0.5) * inverse));
    const sum = real.reduce((all, one) => all + one, 0);
    const fixed = real.map((one) => Math.trunc((sum === 0 ? one : one / sum) * (1 << BITS) + (one / (sum || 1) < 0 ? -0.5 : 0.5)));
    return { first, weights: Int32Array.from(fixed) };
  });
}

/** One pass: `lines` lines of `from` pixels; pixels and lines are so many values apart in the source and in the result. */
function pass(source, out, { lines, from, to, channels, steps, filter }) {
  const windows = weights(from, to, filter);
  for (let line = 0; line < lines; line += 1) {
    for (let place = 0; place < to; place += 1) {
      const { first, weights: window } = windows[place];
      for (let channel = 0; channel < channels; channel += 1) {
        let sum = 1 << (BITS - 1);
        for (let x = 0; x < window.length; x += 1) {
          sum += source[line * steps.line + (first + x) * steps.pixel + channel] * window[x];
        }
        // A clamped array cuts to 0..255.
        out[line * steps.outLine + place * steps.pixel + channel] = sum >> BITS;
      }
    }
  }
}

/** Whether Pillow (as of version 13) begins with the rows: where that takes away more than columns would. */
const rowsFirst = (image, width, height) => height < image.height && 2 * (image.width - width) < image.height - height;

/** Pixels {data, width, height, channels} in another size, by `bilinear` or `bicubic`. */
export function resized(image, width, height, resample) {
  const filter = FILTERS[resample];
  if (rowsFirst(image, width, height)) return wide(tall(image, height, filter), width, filter);
  return tall(wide(image, width, filter), height, filter);
}

/** Pixels of another width. */
function wide({ data, width: from, height, channels }, width, filter) {
  if (width === from) return { data, width, height, channels };
  const out = new Uint8ClampedArray(width * height * channels);
  const steps = { pixel: channels, line: from * channels, outLine: width * channels };
  pass(data, out, { lines: height, from, to: width, channels, steps, filter });
  return { data: out, width, height, channels };
}

/** Pixels of another height. */
function tall({ data, width, height: from, channels }, height, filter) {
  if (height === from) return { data, width, height, channels };
  const out = new Uint8ClampedArray(width * height * channels);
  const steps = { pixel: width * channels, line: channels, outLine: channels };
  pass(data, out, { lines: width, from, to: height, channels, steps, filter });
  return { data: out, width, height, channels };
}
