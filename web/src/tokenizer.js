// Tokenizers of BERT's kind, as the package `tokenizers` of Hugging Face runs them: a tokenizer.json whose model is WordPiece or
// WordLevel. Other kinds are refused, not guessed at.

import { misuse } from "./errors.js";

const SPACE = /\p{White_Space}/u;
const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/u;
const OTHER = /\p{C}/u;
const MARK = /\p{Mn}/gu;
/** Blocks of ideographs, each of which is a word. */
const IDEOGRAPHS = [
  [0x4e00, 0x9fff],
  [0x3400, 0x4dbf],
  [0x20000, 0x2a6df],
  [0x2a700, 0x2b73f],
  [0x2b740, 0x2b81f],
  [0x2b920, 0x2ceaf],
  [0xf900, 0xfaff],
  [0x2f800, 0x2fa1f],
];

function refuse(what) {
  throw misuse(`this package does not know the tokenizer's ${what}; use \`tacit predict\``);
}

/** Lower case, letter by letter, so that no letter depends on its place in the word. */
const lower = (text) => Array.from(text, (letter) => letter.toLowerCase()).join("");

function isIdeograph(letter) {
  const code = letter.codePointAt(0);
  return IDEOGRAPHS.some(([first, last]) => first <= code && code <= last);
}

/** What becomes of a letter when text is cleaned: nothing of control characters, a space of all kinds of space. */
function clean(letter) {
  if ("\t\n\r".includes(letter)) return " ";
  if (letter === "\0" || letter === "\ufffd" || OTHER.test(letter)) return "";
  return SPACE.test(letter) ? " " : letter;
}

function normaliser(given) {
  if (!given) return (text) => text;
  if (given.type === "Lowercase") return lower;
  if (given.type !== "BertNormalizer") refuse(`normalizer ${given.type}`);
  const strips = given.strip_accents ?? given.lowercase;
  return (text) => {
    let found = text;
    if (given.clean_text) found = Array.from(found, clean).join("");
    if (given.handle_chinese_chars) found = Array.from(found, (letter) => (isIdeograph(letter) ? ` ${letter} ` : letter)).join("");
    if (strips) found = found.normalize("NFD").replace(MARK, "");
    return given.lowercase ? lower(found) : found;
  };
}

/** Words and marks of punctuation. */
function words(text) {
  const found = [];
  let word = "";
  const end = () => {
    if (word) found.push(word);
    word = "";
  };
  for (const letter of text) {
    if (SPACE.test(letter)) end();
    else if (PUNCTUATION.test(letter)) {
      end();
      found.push(letter);
    } else word += letter;
  }
  end();
  return found;
}

/** What splits a word into numbers of tokens. */
function splitter(model) {
  const numbers = new Map(Object.entries(model.vocab));
  const unknown = numbers.get(model.unk_token);
  if (model.type === "WordLevel") return (word) => [numbers.get(word) ?? unknown].filter((number) => number !== undefined);
  if (model.type !== "WordPiece") refuse(`model ${model.type}`);
  const [prefix, most] = [model.continuing_subword_prefix ?? "##", model.max_input_chars_per_word ?? 100];
  return (word) => {
    const letters = Array.from(word);
    if (letters.length > most) return [unknown];
    const pieces = [];
    for (let start = 0; start < letters.length; ) {
      let end = letters.length;
      const piece = () => (start > 0 ? prefix : "") + letters.slice(start, end).join("");
      while (end > start && !numbers.has(piece())) end -= 1;
      if (end === start) return [unknown];
      pieces.push(numbers.get(piece()));
      start = end;
    }
    return pieces;
  };
}

/** What stands around one text, and around two: numbers of tokens, and "A" and "B" for the texts. */
function templates(given) {
  if (!given) return { single: ["A"], pair: ["A", "B"] };
  if (given.type === "BertProcessing") {
    const [end, start] = [given.sep[1], given.cls[1]];
    return { single: [start, "A", end], pair: [start, "A", end, "B", end] };
  }
  if (given.type !== "TemplateProcessing") refuse(`post-processor ${given.type}`);
  const read = (parts) => parts.flatMap((part) => (part.Sequence ? [part.Sequence.id] : given.special_tokens[part.SpecialToken.id].ids));
  return { single: read(given.single), pair: read(given.pair) };
}

/** How many tokens stay of each of both texts when `room` are left: the longer one loses first. */
function shares(first, second, room) {
  if (first + second <= room) return [first, second];
  const swapped = first > second;
  let less = Math.min(first, second);
  let more = less > room ? less : Math.max(less, room - less);
  if (less + more > room) [less, more] = [Math.floor(room / 2), Math.floor(room / 2) + (room % 2)];
  return swapped ? [more, less] : [less, more];
}

/** A tokenizer of the content of a tokenizer.json. */
export class Tokenizer {
  #normalise;
  #split;
  #templates;
  #added;

  constructor(content) {
    const given = JSON.parse(content);
    if (given.pre_tokenizer?.type !== "BertPreTokenizer") refuse(`pre-tokenizer ${given.pre_tokenizer?.type ?? "none"}`);
    [this.#normalise, this.#split, this.#templates] = [normaliser(given.normalizer), splitter(given.model), templates(given.post_processor)];
    for (const token of given.added_tokens) {
      if (token.single_word || token.lstrip || token.rstrip || (token.normalized && !token.special)) refuse(`added token ${token.content}`);
    }
    this.#added = given.added_tokens.filter(({ content: text }) => text.length > 0);
  }

  /** Numbers of the tokens of a text, or of two, with what stands around them; at most `most`, and how many there would be. */
  encode(text, second = null, most = Infinity) {
    const parts = [text, ...(second === null ? [] : [second])].map((part) => this.#tokens(part));
    const template = second === null ? this.#templates.single : this.#templates.pair;
    const around = template.filter((part) => typeof part === "number").length;
    const length = around + parts.reduce((sum, part) => sum + part.length, 0);
    const kept = shares(parts[0].length, parts[1]?.length ?? 0, Math.max(0, most - around));
    const ids = template.flatMap((part) => (typeof part === "number" ? [part] : part === "A" ? parts[0].slice(0, kept[0]) : (parts[1]?.slice(0, kept[1]) ?? [])));
    return { ids, length };
  }

  /** Numbers of the tokens of a text; tokens that were added to the model are found in it as they are written. */
  #tokens(text) {
    const found = [];
    const plain = (part) => part && found.push(...words(this.#normalise(part)).flatMap(this.#split));
    let rest = text;
    while (rest) {
      const places = this.#added.map((token) => [rest.indexOf(token.content), token]).filter(([place]) => place >= 0);
      if (places.length === 0) break;
      const [place, token] = places.reduce((best, one) => (one[0] < best[0] || (one[0] === best[0] && one[1].content.length > best[1].content.length) ? one : best));
      plain(rest.slice(0, place));
      found.push(token.id);
      rest = rest.slice(place + token.content.length);
    }
    plain(rest);
    return found;
  }
}
