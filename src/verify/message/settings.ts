import { z } from "zod";
import { messageSourceSchema, nameField, requestSourceSchema } from "./source.ts";

export const HASHES = ["md5", "sha1", "sha256", "sha384", "sha512"] as const;
export type HashName = (typeof HASHES)[number];

export const ENCODINGS = ["hex", "base64", "base64url"] as const;
export type Encoding = (typeof ENCODINGS)[number];

const separator = (description: string) => z.string().max(4).describe(description);

const itemsSchema = z
  .strictObject({
    separator: z
      .string()
      .min(1)
      .max(4)
      .describe("What stands between items; of several characters each separates."),
    assign: z
      .string()
      .length(1)
      .optional()
      .describe("What stands between an item's key and its value; absent: items have no keys."),
    key: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("The key whose items are signatures, such as v1; absent: every item is one."),
  })
  .describe(
    "How one value holds several things, such as t=1700000000,v1=…,v1=…; spaces around items and double quotes around values are dropped.",
  );

const pairField = z.string().min(1).max(64);

const parametersSchema = z
  .strictObject({
    of: z.enum(["form", "query", "json"]).describe("The form, the query, or the members of the JSON body."),
    names: z
      .array(nameField)
      .min(1)
      .max(64)
      .optional()
      .describe("Only these, each where it is present; absent: all."),
    omit: z.array(nameField).max(16).default([]).describe("All but these."),
    order: z
      .enum(["name", "listed"])
      .default("name")
      .describe("Sorted by name (by UTF-16 code unit), or as `names` lists them."),
    pair: pairField
      .default("{{name}}{{value}}")
      .describe("How one is written; of a name that repeats, each different value once, sorted."),
    between: separator("What stands between two.").default(""),
  })
  .describe("What {{parameters}} stands for.");

const signedHeadersSchema = z
  .strictObject({
    listedIn: messageSourceSchema.describe("What lists the names of the signed headers."),
    separator: z
      .string()
      .min(1)
      .max(4)
      .default(",")
      .describe("What stands between names; of several characters each separates."),
    pair: pairField.default("{{name}}:{{value}}").describe("How one is written; names are in lower case."),
    between: separator("What stands between two.").default("\n"),
  })
  .describe("What {{signedHeaders}} stands for: the headers that the sender says it has signed, 32 at most.");

/** The settings of a signature over a message: where it stands, over what it is, and what else it proves. */
export const signedMessageSettings = {
  in: z.enum(["header", "query", "body"]).default("header").describe("Where the signature stands."),
  name: nameField.describe(
    "The header (any case) or query parameter that carries the signature, or its path in the body ($.signature; of a form, $.field).",
  ),
  alsoNamed: z
    .array(nameField)
    .max(15)
    .default([])
    .describe("Further places of the same sort in which a signature may stand; any that is right will do."),
  prefix: z.string().min(1).max(64).optional().describe("What stands before the signature, such as sha256=."),
  items: itemsSchema.optional(),
  encoding: z.enum(ENCODINGS).default("hex").describe("How the signature is written."),
  template: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      "What is signed; absent: the body. {{body}}, {{timestamp}}, {{id}}, {{method}}, {{url}} (whole, as the sender knows it), {{path}}, {{target}} (path and query), {{host}}, {{secret}}, {{parameters}}, {{signedHeaders}}, {{header:name}}, {{query:name}}, {{body:$.path}}, {{item:key}}; each with filters after |: md5, sha1, sha256, sha384, sha512 (to hex unless hex, base64 or base64url follows), crc32, lower, upper, trim, uriEncode, uriDecode, optional (empty where it is missing).",
    ),
  parameters: parametersSchema.optional(),
  signedHeaders: signedHeadersSchema.optional(),
  timestamp: z
    .strictObject({
      source: messageSourceSchema.describe("Where the time stands."),
      unit: z
        .enum(["seconds", "milliseconds", "rfc3339"])
        .default("seconds")
        .describe("Since 1970, or RFC 3339."),
    })
    .optional()
    .describe("When it was signed; the signature must cover it."),
  toleranceSeconds: z
    .int()
    .min(1)
    .max(604_800)
    .optional()
    .describe("How far the time may be from that of receipt, before or after; needs `timestamp`."),
  deliveryId: messageSourceSchema
    .optional()
    .describe("The delivery's id, which names it where no idPath does; the signature must cover it."),
  bodyHash: z
    .strictObject({
      source: requestSourceSchema.describe("Where the sender says the hash; the signature must cover it."),
      algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256").describe("The hash."),
      encoding: z.enum(ENCODINGS).default("hex").describe("How it is written."),
      prefix: z.string().min(1).max(64).optional().describe("What stands before it."),
    })
    .optional()
    .describe("A hash of the body that is signed in place of the body; it is checked."),
  signsBody: z
    .boolean()
    .default(true)
    .describe("false: this sender signs no more of the body than the template names, and that is accepted."),
  bindDedupe: z
    .enum(["none", "signedBytes"])
    .default("none")
    .describe(
      "signedBytes: what was signed is remembered for the dedupe window, beside the ids; the same again under another id or type is quarantined as replayed. For senders whose signature does not cover id and type, and whose signed bytes differ from event to event. Where there is no id, it is made of the signed bytes.",
    ),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .max(1_024)
    .optional()
    .describe(
      "What stands before /hooks/ in the address as the sender knows it, where that is not what the gateway tells.",
    ),
  allowWeak: z
    .boolean()
    .default(false)
    .describe(
      "Accepts what is weak by now but all that some senders have: HMAC-MD5, RSA-SHA1, and plain hashes that a secret is mixed into.",
    ),
} as const;

const signedMessage = z.object(signedMessageSettings);
export type SignedMessageSettings = z.output<typeof signedMessage>;
