import { checkSettings, type NoteWrong } from "../../lib/check-settings.ts";
import { compilePair } from "./parameters.ts";
import type { SignedMessageSettings } from "./settings.ts";
import { compileSigningString, type Reads, toReadKey, WEAK_BODY } from "./signing-string.ts";
import { findWrongName, type MessageSource } from "./source.ts";

/** For zod: do the settings of a signature make sense together? */
export const checkMessage = checkSettings<SignedMessageSettings>((settings, note) => {
  let isSound = true;
  const noteFirst: NoteWrong = (path, message) => {
    isSound = false;
    note(path, message);
  };
  findWrongNames(settings, noteFirst);
  findWrongPairs(settings, noteFirst);
  findMissingCompanions(settings, noteFirst);
  if (!isSound) return;
  const signing = compileSigningString(settings);
  if (!signing.ok) return note("template", signing.error);
  findUnsignedSources(settings, signing.value.reads, note);
  findUnusedSettings(settings, note);
});

function findWrongNames({ in: where, name, alsoNamed }: SignedMessageSettings, note: NoteWrong): void {
  [name, ...alsoNamed].forEach((each, index) => {
    const message = findWrongName(where, each);
    if (message !== undefined) note(index === 0 ? "name" : ["alsoNamed", index - 1], message);
  });
}

function findWrongPairs(settings: SignedMessageSettings, note: NoteWrong): void {
  for (const field of ["parameters", "signedHeaders"] as const) {
    const pair = settings[field]?.pair;
    const compiled = pair === undefined ? undefined : compilePair(pair);
    if (compiled?.ok === false) note([field, "pair"], compiled.error);
  }
}

/** Settings that need another one that is not set. */
function findMissingCompanions(settings: SignedMessageSettings, note: NoteWrong): void {
  const { items, timestamp, deliveryId, toleranceSeconds, signedHeaders, parameters } = settings;
  if (toleranceSeconds !== undefined && timestamp === undefined) {
    note("toleranceSeconds", "needs `timestamp`: without a time nothing is late");
  }
  if (items?.key !== undefined && items.assign === undefined) {
    note(["items", "key"], "needs `assign`: without it items have no keys");
  }
  const besideSignature = [
    { path: ["timestamp", "source"], isThere: timestamp?.source.in === "item" },
    { path: ["deliveryId"], isThere: deliveryId?.in === "item" },
    { path: ["signedHeaders", "listedIn"], isThere: signedHeaders?.listedIn.in === "item" },
    { path: ["template"], isThere: /\{\{\s*item:/.test(settings.template ?? "") },
  ].filter(({ isThere }) => isThere);
  for (const { path } of besideSignature) {
    if (items === undefined) note(path, "needs `items`, which splits what stands beside the signature");
    else if (settings.alsoNamed.length > 0)
      note(path, "cannot stand beside one of several signatures (`alsoNamed`)");
  }
  if (parameters?.order === "listed" && parameters.names === undefined) {
    note(["parameters", "order"], "needs `names`");
  }
}

/** Settings that read text that the signature does not cover. */
function findUnsignedSources(settings: SignedMessageSettings, reads: Reads, note: NoteWrong): void {
  const { timestamp, toleranceSeconds, deliveryId, bodyHash, signsBody, parameters } = settings;
  const coversHash = bodyHash !== undefined && isCovered(bodyHash.source, reads);
  const coversBody = reads.has("body") || coversHash;
  const covered = coversBody ? new Set([...reads, "body"]) : reads;
  const covers = (source: MessageSource): boolean =>
    isCovered(source, covered) && !isOmitted(source, parameters?.omit ?? []);
  if (toleranceSeconds !== undefined && timestamp !== undefined && !covers(timestamp.source)) {
    note(["timestamp", "source"], "is not signed: put {{timestamp}} into `template`");
  }
  if (deliveryId !== undefined && !covers(deliveryId)) {
    note(
      "deliveryId",
      "is not signed, so anyone who has one delivery can send it again under another: leave it out, or see `bindDedupe`",
    );
  }
  if (bodyHash !== undefined && !coversHash) {
    note(["bodyHash", "source"], "is not signed: put it into `template`");
  }
  if (signsBody && !coversBody) {
    note(
      "template",
      "holds no body and no hash of it: any body would pass. `signsBody: false` says that the sender signs no more",
    );
  }
  if (reads.has(WEAK_BODY) && !settings.allowWeak) {
    note(
      "template",
      "holds the body only by a checksum, for which another body can be made: needs `allowWeak: true`",
    );
  }
}

function isCovered(source: MessageSource, reads: Reads): boolean {
  if (reads.has(toReadKey(source))) return true;
  if (source.in === "query") return reads.has("query");
  return source.in === "body" && (reads.has("body") || reads.has(getTopMember(source.name)));
}

/** A member that is signed whole covers what stands in it. */
const getTopMember = (path: string): string => `body:${/^\$(?:\.[^.[]+)?/.exec(path)?.[0] ?? ""}`;

const isOmitted = ({ in: where, name }: MessageSource, omit: readonly string[]): boolean =>
  omit.some((omitted) => name === omitted || (where === "body" && name === `$.${omitted}`));

/** Settings that the template does not use. */
function findUnusedSettings({ template = "", ...settings }: SignedMessageSettings, note: NoteWrong): void {
  for (const field of ["parameters", "signedHeaders"] as const) {
    if (settings[field] !== undefined && !new RegExp(`\\{\\{\\s*${field}\\b`).test(template))
      note(field, `is not used: put {{${field}}} into \`template\``);
  }
}
