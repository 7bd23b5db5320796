// What the engine of Chromium computes in a second, and what bounds it.

/** By the names of crates/web/src/rates.rs: what is counted, and what takes the time. */
export const RATES = {
  aes: { unit: "blocks under one key", bound: "gates: about 250 instructions on vectors a block, since WebAssembly has none for AES" },
  "ferret sender": { unit: "correlations", bound: "three blocks of AES each, then reads of the code and products in GF(2^128) without an instruction for them" },
  "ferret receiver": { unit: "correlations", bound: "as at the sender" },
  "rlwe encrypt": { unit: "ciphertexts of degree 4096", bound: "transforms of two primes in 64-bit products, and AES for errors" },
  "rlwe decrypt": { unit: "ciphertexts of degree 4096", bound: "transforms of two primes in 64-bit products" },
  decode: { unit: "bytes of integers of 33 bits", bound: "shifts of 64-bit words" },
};

/** Rates with their units and bounds. */
export async function measured(browser) {
  const found = await browser.rates(Object.keys(RATES));
  return Object.fromEntries(Object.entries(RATES).map(([name, known]) => [name, { per_second: found[name], ...known }]));
}

/** A line for people. */
export function line(name, { per_second: rate, unit }) {
  const [scale, prefix] = rate >= 1e6 ? [1e6, " million"] : [1, ""];
  return `${name.padEnd(16)} ${(rate / scale).toPrecision(3)}${prefix} ${unit} a second`;
}
