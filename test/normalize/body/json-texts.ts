export type Random = () => number;

/** Returns the pseudorandom number generator mulberry32, which is small and fast. */
export function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const randomBelow = (random: Random, limit: number): number => Math.floor(random() * limit);
const pick = <T>(random: Random, choices: readonly [T, ...T[]]): T =>
  choices[randomBelow(random, choices.length)] ?? choices[0];

const SPACES = ["", "", "", " ", "\n", "\t", "\r\n", "   "] as const;
const NUMBERS = [
  "0",
  "-0",
  "1",
  "1.0",
  "1e3",
  "1E+3",
  "-1.5e-7",
  "12345678901234567890",
  "0.1000000000000000055511151231257827",
  "1e400",
] as const;
const CHARACTERS = ["a", "b", "é", "漢", "😀", " ", "{", "}", "[", "]", ",", ":", "/", "'"] as const;
const ESCAPES = [
  '\\"',
  "\\\\",
  "\\/",
  "\\n",
  "\\u0061",
  "\\u00e9",
  "\\ud83d\\ude00",
  "\\ud800",
  "\\u0000",
] as const;
// Few names in several spellings, so that members often repeat.
// No name is a backslash, because of the bug of V8 that `slicing-thread.ts` describes.
const NAMES = ['"a"', '"b"', '"\\u0061"', '"a\\"b"', '"é"', '"\\u00e9"', '""', '"__proto__"', '"0"'] as const;
const BREAKS = [
  "",
  ",",
  "]",
  "}",
  '"',
  "\\",
  "0",
  "\u0000",
  "\n",
  "[",
  "{",
  ":",
  "e",
  "-",
  "+",
  ".",
  "\u00a0",
  "nul",
] as const;

/** Generates a JSON text, possibly with surrounding whitespace. */
export function randomText(random: Random, depth = 4): string {
  const space = (): string => pick(random, SPACES);
  return `${space()}${randomValue(random, depth, space)}${space()}`;
}

function randomValue(random: Random, depth: number, space: () => string): string {
  const kind = randomBelow(random, depth > 0 ? 8 : 4);
  if (kind < 1) return pick(random, ["true", "false", "null"]);
  if (kind < 2) return pick(random, NUMBERS);
  if (kind < 4) return randomString(random);
  const parts = Array.from({ length: randomBelow(random, 5) }, () => {
    const value = `${space()}${randomValue(random, depth - 1, space)}${space()}`;
    return kind < 6 ? value : `${space()}${pick(random, NAMES)}${space()}:${value}`;
  });
  const inside = parts.length === 0 ? space() : parts.join(",");
  return kind < 6 ? `[${inside}]` : `{${inside}}`;
}

function randomString(random: Random): string {
  const characters = Array.from({ length: randomBelow(random, 6) }, () =>
    random() < 0.7 ? pick(random, CHARACTERS) : pick(random, ESCAPES),
  );
  return `"${characters.join("")}"`;
}

/** Replaces a character, inserts some characters, or truncates the text. The result is usually not valid JSON. */
export function breakText(random: Random, text: string): string {
  const at = randomBelow(random, text.length + 1);
  if (random() < 0.2) return text.slice(0, at);
  return text.slice(0, at) + pick(random, BREAKS) + text.slice(at + randomBelow(random, 2));
}
