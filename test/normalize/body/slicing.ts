import { isDeepStrictEqual } from "node:util";
import { buildTargets, type Location } from "../../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../../src/normalize/body/payload-slice.ts";
import { breakText, createRandom, randomText } from "./json-texts.ts";

interface Found {
  readonly value: unknown;
  readonly location: Location;
}

/** Returns the value and all values nested in it, each with its location. */
function listValues(value: unknown, location: Location = []): Found[] {
  const inside: Found[] = [{ value, location }];
  if (Array.isArray(value)) {
    value.forEach((child, index) => {
      inside.push(...listValues(child, [...location, index]));
    });
  } else if (typeof value === "object" && value !== null) {
    for (const [name, child] of Object.entries(value)) inside.push(...listValues(child, [...location, name]));
  }
  return inside;
}

function tryParse<T>(parse: () => T): { readonly parsed: T } | undefined {
  try {
    return { parsed: parse() };
  } catch {
    return undefined;
  }
}

/**
 * Parses random texts, half of them broken, and slices every value out of each text.
 *
 * @throws Error if `JSON.parse` disagrees on a text, or if a slice is not exactly the text of its value
 */
export function sliceRandomTexts(seed: number, textCount: number) {
  const random = createRandom(seed);
  const counts = { accepted: 0, refused: 0, slices: 0 };
  for (let round = 0; round < textCount; round++) {
    const whole = randomText(random);
    const text = round % 2 === 0 ? whole : breakText(random, whole);
    const json = tryParse(() => JsonText.parse(text))?.parsed;
    const isAccepted = tryParse(() => JSON.parse(text)) !== undefined;
    if ((json !== undefined) !== isAccepted) throw new Error(`differs on ${JSON.stringify(text)}`);
    if (json === undefined) {
      counts.refused++;
      continue;
    }
    counts.accepted++;
    const found = listValues(json.value);
    const cuts = json.cut(found);
    found.forEach(({ value, location }, index) => {
      const slice = cuts[index]?.text ?? "";
      const isTight = slice === slice.trim() && slice !== "";
      if (!isTight || !isDeepStrictEqual(JSON.parse(slice), value)) {
        const place = JSON.stringify(location);
        throw new Error(`${JSON.stringify(text)} at ${place} gave ${JSON.stringify(slice)}`);
      }
      counts.slices++;
    });
  }
  return counts;
}

/**
 * Finds the values of random texts by location, and the elements of arrays.
 *
 * @throws Error if a text does not match its value
 */
export function findInRandomTexts(seed: number, textCount: number) {
  const random = createRandom(seed);
  const counts = { found: 0, elements: 0 };
  for (let round = 0; round < textCount; round++) {
    const json = JsonText.parse(randomText(random));
    for (const { location, value } of listValues(json.value)) {
      const found = json.find(buildTargets([location]), value);
      const elements = found?.elements() ?? [];
      const values = elements.map(({ text }) => JSON.parse(text));
      const isSame = isDeepStrictEqual(JSON.parse(found?.text ?? ""), value);
      if (!isSame || !isDeepStrictEqual(values, Array.isArray(value) ? value : [])) {
        throw new Error(`${JSON.stringify(json.text)} differs at ${JSON.stringify(location)}`);
      }
      counts.found++;
      counts.elements += elements.length;
    }
  }
  return counts;
}
