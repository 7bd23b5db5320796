// Pictures of a page as RGBA pixels.

import { misuse } from "./errors.js";
import { inputOf, preprocessingOf } from "./preprocessing.js";

/** Most pixels of a picture. */
const MOST_PIXELS = 1 << 26;

const is = (given, name) => typeof globalThis[name] === "function" && given instanceof globalThis[name];

/** Whether it is a picture: pixels, a file, a canvas or what a browser has decoded. */
export function isPicture(given) {
  const kinds = ["ImageData", "Blob", "ImageBitmap", "HTMLCanvasElement", "OffscreenCanvas", "HTMLImageElement", "HTMLVideoElement", "VideoFrame"];
  return kinds.some((name) => is(given, name)) || (given?.data instanceof Uint8ClampedArray && given.width > 0 && given.height > 0);
}

/** RGBA pixels {data, width, height} of a picture, turned upright; colours as the file has them. */
export async function pixelsOf(given) {
  if (given.data instanceof Uint8ClampedArray) {
    if (given.data.length !== 4 * given.width * given.height) throw misuse("pixels are RGBA, four values each");
    return given;
  }
  if (is(given, "HTMLCanvasElement") || is(given, "OffscreenCanvas")) {
    const context = given.getContext("2d");
    if (context !== null) return context.getImageData(0, 0, given.width, given.height);
  }
  if (is(given, "ImageBitmap")) return drawn(given);
  if (typeof createImageBitmap !== "function") {
    throw misuse("only browsers read files of pictures: give RGBA pixels {data: Uint8ClampedArray, width, height}");
  }
  // Without the conversion of a colour profile, which Python does not do either.
  const bitmap = await createImageBitmap(given, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).catch(() => {
    throw misuse("the file is no picture that this browser can read, or is damaged");
  });
  try {
    return drawn(bitmap);
  } finally {
    bitmap.close();
  }
}

/** Whether it is a picture, or several. */
export const arePictures = (given) => isPicture(given) || (Array.isArray(given) && given.length > 0 && given.every(isPicture));

/** The input {data, shape} of a picture, or of several with a leading axis, through a model's preprocessing. */
export async function inputsOf(given, preprocessing) {
  const whole = preprocessingOf(preprocessing);
  if (!Array.isArray(given)) return inputOf(await pixelsOf(given), whole);
  const all = [];
  for (const picture of given) all.push(inputOf(await pixelsOf(picture), whole));
  const [{ data: first, shape }] = all;
  if (all.some((one) => String(one.shape) !== String(shape))) throw misuse("the pictures have different sizes");
  const data = new Float32Array(all.length * first.length);
  all.forEach((one, place) => data.set(one.data, place * first.length));
  return { data, shape: [all.length, ...shape] };
}

function drawn(bitmap) {
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) throw misuse(`the picture has more than ${MOST_PIXELS} pixels; make it smaller first`);
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, width, height);
}
