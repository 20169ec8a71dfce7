import type { z } from "zod";
import { partsOf } from "./message.ts";
import { compilePair } from "./parameters.ts";
import type { SignedMessageSettings } from "./settings.ts";
import { compileSigningString, keyOf, type Reads, WEAK_BODY } from "./signing-string.ts";
import { findWrongName, type MessageSource } from "./source.ts";

/** A setting that makes no sense: where, and why. */
interface Wrong {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** For zod: what of a signature's settings makes no sense together. */
export function checkMessage(payload: z.core.ParsePayload<SignedMessageSettings>): void {
  for (const { path, message } of findWrongSettings(payload.value)) {
    payload.issues.push({ code: "custom", path: [...path], message, input: payload.value });
  }
}

function findWrongSettings(settings: SignedMessageSettings): readonly Wrong[] {
  const wrong = [...findWrongNames(settings), ...findWrongPairs(settings), ...findLonely(settings)];
  if (wrong.length > 0) return wrong;
  const signing = compileSigningString(settings.template, partsOf(settings));
  if (!signing.ok) return [{ path: ["template"], message: signing.error }];
  return [...findUncovered(settings, signing.value.reads), ...findUnread(settings)];
}

function findWrongNames({ in: where, name, alsoNamed }: SignedMessageSettings): readonly Wrong[] {
  const names = [
    { path: ["name"], name },
    ...alsoNamed.map((also, i) => ({ path: ["alsoNamed", i], name: also })),
  ];
  return names.flatMap(({ path, name }) => {
    const message = findWrongName(where, name);
    return message === undefined ? [] : [{ path, message }];
  });
}

function findWrongPairs(settings: SignedMessageSettings): readonly Wrong[] {
  return (["parameters", "signedHeaders"] as const).flatMap((field) => {
    const pair = settings[field]?.pair;
    const compiled = pair === undefined ? undefined : compilePair(pair);
    return compiled === undefined || compiled.ok ? [] : [{ path: [field, "pair"], message: compiled.error }];
  });
}

/** Settings that need another one that is not set. */
function findLonely(settings: SignedMessageSettings): readonly Wrong[] {
  const {
    items,
    timestamp,
    deliveryId,
    toleranceSeconds,
    signedHeaders,
    alsoNamed,
    template = "",
  } = settings;
  const wrong: Wrong[] = [];
  if (toleranceSeconds !== undefined && timestamp === undefined) {
    wrong.push({ path: ["toleranceSeconds"], message: "needs `timestamp`: without a time nothing is late" });
  }
  if (items?.key !== undefined && items.assign === undefined) {
    wrong.push({ path: ["items", "key"], message: "needs `assign`: without it items have no keys" });
  }
  const besideSignature = [
    { path: ["timestamp", "source"], source: timestamp?.source },
    { path: ["deliveryId"], source: deliveryId },
    { path: ["signedHeaders", "listedIn"], source: signedHeaders?.listedIn },
  ].filter(({ source }) => source?.in === "item");
  const reads = [
    ...besideSignature.map(({ path }) => path),
    ...(/\{\{\s*item:/.test(template) ? [["template"]] : []),
  ];
  for (const path of reads) {
    if (items === undefined)
      wrong.push({ path, message: "needs `items`, which splits what stands beside the signature" });
    else if (alsoNamed.length > 0)
      wrong.push({ path, message: "cannot stand beside one of several signatures (`alsoNamed`)" });
  }
  if (settings.parameters?.order === "listed" && settings.parameters.names === undefined) {
    wrong.push({ path: ["parameters", "order"], message: "needs `names`" });
  }
  return wrong;
}

/** Settings that read text that the signature does not cover. */
function findUncovered(settings: SignedMessageSettings, reads: Reads): readonly Wrong[] {
  const { timestamp, toleranceSeconds, deliveryId, bodyHash, signsBody, parameters } = settings;
  const wrong: Wrong[] = [];
  const coversBody = reads.has("body") || (bodyHash !== undefined && isCovered(bodyHash.source, reads));
  const covers = (source: MessageSource): boolean =>
    isCovered(source, coversBody ? new Set([...reads, "body"]) : reads) &&
    !isOmitted(source, parameters?.omit ?? []);
  if (toleranceSeconds !== undefined && timestamp !== undefined && !covers(timestamp.source)) {
    wrong.push({
      path: ["timestamp", "source"],
      message: "is not signed: put {{timestamp}} into `template`",
    });
  }
  if (deliveryId !== undefined && !covers(deliveryId)) {
    wrong.push({
      path: ["deliveryId"],
      message:
        "is not signed, so anyone who has one delivery can send it again under another: leave it out, or see `bindDedupe`",
    });
  }
  if (bodyHash !== undefined && !isCovered(bodyHash.source, reads)) {
    wrong.push({ path: ["bodyHash", "source"], message: "is not signed: put it into `template`" });
  }
  if (signsBody && !coversBody) {
    wrong.push({
      path: ["template"],
      message:
        "holds no body and no hash of it: any body would pass. `signsBody: false` says that the sender signs no more",
    });
  }
  if (reads.has(WEAK_BODY) && !settings.allowWeak) {
    const message =
      "holds the body only by a checksum, for which another body can be made: needs `allowWeak: true`";
    wrong.push({ path: ["template"], message });
  }
  return wrong;
}

function isCovered(source: MessageSource, reads: Reads): boolean {
  if (reads.has(keyOf(source))) return true;
  if (source.in === "query") return reads.has("query");
  return source.in === "body" && (reads.has("body") || reads.has(topMemberOf(source.name)));
}

/** A member that is signed whole covers what stands in it. */
const topMemberOf = (path: string): string => `body:${/^\$(?:\.[^.[]+)?/.exec(path)?.[0] ?? ""}`;

const isOmitted = ({ in: where, name }: MessageSource, omit: readonly string[]): boolean =>
  omit.some((omitted) => name === omitted || (where === "body" && name === `$.${omitted}`));

/** Settings that the template does not use. */
function findUnread({ template = "", parameters, signedHeaders }: SignedMessageSettings): readonly Wrong[] {
  const unread = (field: string, isSet: boolean): readonly Wrong[] =>
    isSet && !new RegExp(`\\{\\{\\s*${field}\\b`).test(template)
      ? [{ path: [field], message: `is not used: put {{${field}}} into \`template\`` }]
      : [];
  return [
    ...unread("parameters", parameters !== undefined),
    ...unread("signedHeaders", signedHeaders !== undefined),
  ];
}
