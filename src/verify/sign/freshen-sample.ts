import { err, ok, type Result } from "../../lib/result.ts";
import type { Preset } from "../presets.ts";
import { type OutgoingRequest, type Place, parsePlace, putInto } from "./place.ts";

type Paths = Pick<Preset, "typePath" | "idPath" | "itemsPath" | "verification">;

/**
 * Turns a provider's sample delivery into a new event, with a new id and the given type, if any. The error explains why the type
 * cannot be set.
 */
export function freshenSample(
  request: OutgoingRequest,
  paths: Paths,
  { type, random }: { readonly type: string | undefined; readonly random: () => number },
): Result<OutgoingRequest, string> {
  const withId = findIdPlaces(paths).reduce((fresh, place) => {
    const put = putInto(fresh, place, (before) => createSimilarId(before, random));
    return put.ok ? put.value : fresh;
  }, request);
  const fresh = withUniqueBytes(withId, paths, random);
  if (type === undefined) return ok(fresh);
  const place = paths.typePath === undefined ? undefined : parsePlace(paths.typePath, paths.itemsPath);
  if (place === undefined)
    return err(
      "cannot set the event type, because the preset does not read it from a single place; pass the whole body with --data",
    );
  return putInto(fresh, place, () => type);
}

/** Changes the sample so that its signed bytes are unique, if the channel detects replays by the signed bytes (`bindDedupe`). */
function withUniqueBytes(
  request: OutgoingRequest,
  { verification }: Paths,
  random: () => number,
): OutgoingRequest {
  if (!JSON.stringify(verification).includes('"bindDedupe":"signedBytes"')) return request;
  const put = putInto(request, { in: "body", name: "$.sample" }, () => Math.floor(random() * 1e15));
  return put.ok ? put.value : request;
}

function findIdPlaces({ idPath, itemsPath, verification }: Paths): readonly Place[] {
  const { scheme, headerPrefix = "webhook-" } = verification as {
    readonly scheme: string;
    readonly headerPrefix?: string;
  };
  // The signed id of Standard Webhooks.
  const signed = scheme === "standardWebhooks" ? [{ in: "header", name: `${headerPrefix}id` } as const] : [];
  const place = idPath === undefined ? undefined : parsePlace(idPath, itemsPath);
  return place === undefined ? signed : [...signed, place];
}

const DIGITS = "0123456789";
const LOWER = "abcdefghijklmnopqrstuvwxyz";

/** Creates a random id in the format of an existing id. Keeps everything before the last separator, except in hexadecimal ids. */
function createSimilarId(before: unknown, random: () => number): unknown {
  if (typeof before === "number") return Math.floor((0.1 + 0.9 * random()) * 10 ** String(before).length);
  // Use a random number if the id is not a string. For numbers beyond double precision, `parseExactly` returns an object.
  const text = typeof before === "string" ? before : `${Math.floor(random() * 1e15)}`;
  const pick = (letters: string): string => letters[Math.floor(random() * letters.length)] ?? "";
  if (/^[0-9a-f-]+$/i.test(text)) {
    const letters = /[a-f]/i.test(text) ? "0123456789abcdef" : DIGITS;
    return text.replace(/[0-9a-f]/gi, () => pick(letters));
  }
  const kept = /^.*[_:-](?=[^_:-]{4})/.exec(text)?.[0] ?? "";
  const fresh = text.slice(kept.length).replace(/[0-9]|[a-z]|[A-Z]/g, (letter) => {
    if (/[0-9]/.test(letter)) return pick(DIGITS);
    return /[a-z]/.test(letter) ? pick(LOWER) : pick(LOWER.toUpperCase());
  });
  return kept + fresh;
}
