// From 8-bit pixels to what a network takes, as tacit.data.preprocess does it: resize, crop, order of channels, scale,
// mean and deviation. Results are those of Python to the bit.

import { misuse } from "./errors.js";
import { resized } from "./resample.js";

const LONGEST_SIDE = 4096;
const ORDERS = ["RGB", "BGR", "L"];
const RESAMPLES = ["bilinear", "bicubic"];
const DEFAULTS = { resize: null, crop: null, channel_order: "RGB", scale: 1, mean: [0], std: [1], resample: "bilinear" };
const [MEAN, STD] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];

/** Presets by the names that `tacit compile --preprocess` takes. */
export const PRESETS = {
  imagenet: { resize: 256, crop: 224, scale: 1 / 255, mean: MEAN, std: STD },
  mobilenet: { resize: 256, crop: 224, mean: [128], std: [128] },
  "caffe-squeezenet": { resize: 227, crop: 227, channel_order: "BGR", mean: [104, 117, 123] },
  cifar10: { resize: 32, crop: 32, scale: 1 / 255, mean: MEAN, std: STD },
  mnist: { resize: 28, crop: 28, channel_order: "L", scale: 1 / 255 },
  unit: { scale: 1 / 255 },
  raw: {},
};

/** A whole specification of a preset's name or of fields of one; refuses others. */
export function preprocessingOf(given) {
  const refuse = (name, what) => {
    throw misuse(`preprocessing: \`${name}\` must be ${what}`);
  };
  if (typeof given === "string" && !Object.hasOwn(PRESETS, given)) {
    throw misuse(`there is no preprocessing \`${given}\`; there are ${Object.keys(PRESETS).join(", ")}`);
  }
  const fields = typeof given === "string" ? PRESETS[given] : given;
  if (fields === null || typeof fields !== "object") {
    throw misuse("a picture needs its model's preprocessing: name it in the options of `connect` or `predict`");
  }
  for (const name of Object.keys(fields)) {
    if (!Object.hasOwn(DEFAULTS, name)) refuse(name, `absent; there are ${Object.keys(DEFAULTS).join(", ")}`);
  }
  const whole = { ...DEFAULTS, ...fields };
  for (const name of ["resize", "crop"]) {
    const side = whole[name];
    const fits = Number.isInteger(side) && side >= 1 && side <= LONGEST_SIDE;
    if (side !== null && !fits) refuse(name, `null or a number of pixels, 1 to ${LONGEST_SIDE}`);
  }
  if (whole.resize !== null && whole.crop !== null && whole.crop > whole.resize) refuse("crop", "at most `resize`");
  if (!ORDERS.includes(whole.channel_order)) refuse("channel_order", `one of ${ORDERS.join(", ")}`);
  if (!RESAMPLES.includes(whole.resample)) refuse("resample", `one of ${RESAMPLES.join(", ")}`);
  if (!Number.isFinite(whole.scale) || whole.scale === 0) refuse("scale", "a number other than 0");
  const channels = whole.channel_order === "L" ? 1 : 3;
  for (const name of ["mean", "std"]) {
    const values = whole[name];
    const fits = Array.isArray(values) && [1, channels].includes(values.length) && values.every(Number.isFinite);
    if (!fits) refuse(name, `a list of ${channels} numbers, one per channel, or of one`);
  }
  if (Math.min(...whole.std) < 1e-6) refuse("std", "at least 1e-6");
  return whole;
}

/** The input {data, shape: [channels, height, width]} of RGBA pixels {data, width, height}; `given` is a preprocessing. */
export function inputOf(image, given) {
  const preprocessing = preprocessingOf(given);
  return normalised(fitted(image, preprocessing), preprocessing);
}

/** Grey or RGB pixels {data, width, height, channels}, resized and cropped. */
export function fitted(image, { resize, crop, channel_order: order, resample }) {
  let pixels = order === "L" ? grey(image) : colours(image);
  if (pixels.width === crop && pixels.height === crop) return pixels;
  if (resize !== null) {
    const short = Math.min(pixels.width, pixels.height);
    const side = (length) => (length === short ? resize : Math.trunc((resize * length) / short));
    pixels = resized(pixels, side(pixels.width), side(pixels.height), resample);
  }
  return crop === null ? pixels : centre(pixels, crop);
}

/** Planes of grey or RGB pixels, in the order of the model and its units. */
export function normalised({ data, width, height, channels }, { channel_order: order, scale, mean, std }) {
  const size = width * height;
  const input = new Float32Array(channels * size);
  for (let plane = 0; plane < channels; plane += 1) {
    const channel = order === "BGR" ? channels - 1 - plane : plane;
    const [centre, deviation] = [mean, std].map((all) => Math.fround(all.length === 1 ? all[0] : all[plane]));
    const factor = Math.fround(scale);
    for (let at = 0; at < size; at += 1) {
      const scaled = Math.fround(data[at * channels + channel] * factor);
      input[plane * size + at] = Math.fround(scaled - centre) / deviation;
    }
  }
  return { data: input, shape: [channels, height, width] };
}

/** The luma of ITU-R 601-2, in the fixed point of Pillow. */
function grey({ data, width, height }) {
  const out = new Uint8ClampedArray(width * height);
  for (let at = 0; at < out.length; at += 1) {
    const [red, green, blue] = [data[4 * at], data[4 * at + 1], data[4 * at + 2]];
    out[at] = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
  }
  return { data: out, width, height, channels: 1 };
}

function colours({ data, width, height }) {
  const out = new Uint8ClampedArray(3 * width * height);
  for (let at = 0; at < width * height; at += 1) {
    for (let channel = 0; channel < 3; channel += 1) out[3 * at + channel] = data[4 * at + channel];
  }
  return { data: out, width, height, channels: 3 };
}

/** The middle of a picture. */
function centre({ data, width, height, channels }, side) {
  if (Math.min(width, height) < side) {
    throw misuse(`an image of ${width}x${height} pixels is smaller than the crop ${side}x${side}`);
  }
  const [left, top] = [width, height].map((length) => even((length - side) / 2));
  const out = new Uint8ClampedArray(side * side * channels);
  for (let row = 0; row < side; row += 1) {
    const start = ((top + row) * width + left) * channels;
    out.set(data.subarray(start, start + side * channels), row * side * channels);
  }
  return { data: out, width: side, height: side, channels };
}

/** The nearest integer, the even one of two that are as near, as Python rounds. */
function even(value) {
  const below = Math.floor(value);
  if (value - below !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}
