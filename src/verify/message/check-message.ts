import { checkFields, type NoteWrong } from "../../lib/check-fields.ts";
import { unwrap } from "../../lib/result.ts";
import type { QueryGap, RequestPlace } from "../verifier.ts";
import type { SignedMessageConfig } from "./config.ts";
import { compilePair } from "./parameters.ts";
import { compileSigningString, type Reads, toReadKey, WEAK_BODY } from "./signing-string.ts";
import { findWrongName, type MessageSource } from "./source.ts";

/** Zod check that reports contradictions in the signature config of a channel. */
export const checkMessage = checkFields<SignedMessageConfig>((config, note) => {
  let isSound = true;
  const noteFirst: NoteWrong = (path, message) => {
    isSound = false;
    note(path, message);
  };
  findWrongNames(config, noteFirst);
  findWrongPairs(config, noteFirst);
  findMissingCompanions(config, noteFirst);
  if (!isSound) return;
  const signing = compileSigningString(config);
  if (!signing.ok) return note("template", signing.error);
  findUnsignedSources(config, signing.value.reads, note);
  findUnusedFields(config, note);
});

function findWrongNames({ in: where, name, alsoNamed }: SignedMessageConfig, note: NoteWrong): void {
  [name, ...alsoNamed].forEach((each, index) => {
    const message = findWrongName(where, each);
    if (message !== undefined) note(index === 0 ? "name" : ["alsoNamed", index - 1], message);
  });
}

function findWrongPairs(config: SignedMessageConfig, note: NoteWrong): void {
  for (const field of ["parameters", "signedHeaders"] as const) {
    const pair = config[field]?.pair;
    const compiled = pair === undefined ? undefined : compilePair(pair);
    if (compiled?.ok === false) note([field, "pair"], compiled.error);
  }
}

/** Finds fields that only work together with another field, which is missing. */
function findMissingCompanions(config: SignedMessageConfig, note: NoteWrong): void {
  const { items, timestamp, deliveryId, toleranceSeconds, signedHeaders, parameters } = config;
  if (toleranceSeconds !== undefined && timestamp === undefined) {
    note("toleranceSeconds", "needs `timestamp`");
  }
  if (items?.key !== undefined && items.assign === undefined) {
    note(["items", "key"], "needs `assign`, because items without it have no keys");
  }
  const besideSignature = [
    { path: ["timestamp", "source"], isThere: timestamp?.source.in === "item" },
    { path: ["deliveryId"], isThere: deliveryId?.in === "item" },
    { path: ["signedHeaders", "listedIn"], isThere: signedHeaders?.listedIn.in === "item" },
    { path: ["template"], isThere: /\{\{\s*item:/.test(config.template ?? "") },
  ].filter(({ isThere }) => isThere);
  for (const { path } of besideSignature) {
    if (items === undefined) note(path, "needs `items`, which splits the value that contains the signature");
    else if (config.alsoNamed.length > 0)
      note(path, "must not be read from an item when `alsoNamed` allows several signatures");
  }
  if (parameters?.order === "listed" && parameters.names === undefined) {
    note(["parameters", "order"], "needs `names`");
  }
}

/** Finds fields that read values which the signature does not protect. */
function findUnsignedSources(config: SignedMessageConfig, reads: Reads, note: NoteWrong): void {
  const { timestamp, toleranceSeconds, deliveryId, bodyHash, signsBody, parameters, noBody } = config;
  const coversHash = bodyHash !== undefined && isCovered(bodyHash.source, reads);
  const coversBody = reads.has("body") || coversHash;
  const covered = coversBody ? new Set([...reads, "body"]) : reads;
  const covers = (source: MessageSource): boolean =>
    isCovered(source, covered) && !isOmitted(source, parameters?.omit ?? []);
  if (toleranceSeconds !== undefined && timestamp !== undefined && !covers(timestamp.source)) {
    note(["timestamp", "source"], "is not covered by the signature: add {{timestamp}} to `template`");
  }
  if (deliveryId !== undefined && !covers(deliveryId)) {
    note(
      "deliveryId",
      "is not covered by the signature, so anyone with one delivery can resend it under another id: remove this setting, or use `bindDedupe`",
    );
  }
  if (bodyHash !== undefined && !coversHash) {
    note(["bodyHash", "source"], "is not covered by the signature: add the value to `template`");
  }
  if (signsBody && !coversBody && !noBody) {
    note(
      "template",
      "contains neither the body nor its hash, so any body would be accepted: add {{body}}, or set `signsBody: false` if the sender does not sign the body",
    );
  }
  if (reads.has(WEAK_BODY) && !config.allowWeak) {
    note(
      "template",
      "contains only a checksum of the body, which can be forged: set `allowWeak: true` to accept that",
    );
  }
}

function isCovered(source: MessageSource, reads: Reads): boolean {
  if (reads.has(toReadKey(source))) return true;
  if (source.in === "query") return reads.has("query");
  return source.in === "body" && (reads.has("body") || reads.has(getTopMember(source.name)));
}

/**
 * Returns the top-level body member that a path leads into, such as `body:$.data`. A signature over that member also covers all
 * values inside it.
 */
const getTopMember = (path: string): string => `body:${/^\$(?:\.[^.[]+)?/.exec(path)?.[0] ?? ""}`;

const isOmitted = ({ in: where, name }: MessageSource, omit: readonly string[]): boolean =>
  omit.some((omitted) => name === omitted || (where === "body" && name === `$.${omitted}`));

/**
 * Returns whether the signature covers a part of the request. A signature over some members of a body does not cover the body.
 *
 * @param config a config that `checkMessage` accepts
 */
export function coversPlace(config: SignedMessageConfig, place: RequestPlace): boolean {
  const { reads } = unwrap(compileSigningString(config), "template");
  if (place.in === "body")
    return reads.has("body") || (config.bodyHash !== undefined && isCovered(config.bodyHash.source, reads));
  const { name } = place;
  if (name === undefined) return place.in === "query" && reads.has("query");
  return isCovered({ in: place.in, name }, reads);
}

/** Finds fields that have no effect, because the template of the signed text does not use them. */
function findUnusedFields({ template = "", ...config }: SignedMessageConfig, note: NoteWrong): void {
  for (const field of ["parameters", "signedHeaders"] as const) {
    if (config[field] !== undefined && !new RegExp(`\\{\\{\\s*${field}\\b`).test(template))
      note(field, `has no effect: add {{${field}}} to \`template\``);
  }
}

/**
 * Returns why a signature does not verify GET and DELETE deliveries. Their body is empty, so a signature that covers only the body would
 * be the same for all of them.
 *
 * @param config a config that `checkMessage` accepts
 */
export function findQueryGap(config: SignedMessageConfig): QueryGap | undefined {
  const { reads } = unwrap(compileSigningString(config), "template");
  if (config.in === "body") return { isForgeable: false, message: "the signature is in the body" };
  const readsMembers =
    [...reads].some((key) => key.startsWith("body:")) ||
    (config.parameters !== undefined && config.parameters.of !== "query");
  if (readsMembers && !/\|\s*optional\b/.test(config.template ?? ""))
    return { isForgeable: false, message: "the signature covers values in the body" };
  if (reads.has("query")) return undefined;
  const isPartial = [...reads].some((key) => /^(?:query|header|item):/.test(key));
  if (!config.signsBody && isPartial) return undefined;
  return {
    isForgeable: true,
    message:
      "the signature does not cover the query: add {{url}}, {{target}} or {{parameters}} of the query to `verification.template`",
  };
}
