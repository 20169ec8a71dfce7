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
      .describe("Separators between items. Each character of this text is a separator."),
    assign: z
      .string()
      .length(1)
      .optional()
      .describe("Character between an item's key and value. Without it, items have no keys."),
    key: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("Key of the items that are signatures, such as v1. Without it, every item is a signature."),
  })
  .describe(
    "Splits a value that contains several items, such as t=1700000000,v1=…,v1=…. Spaces around items and double quotes around values are removed.",
  );

const pairField = z.string().min(1).max(64);

const parametersSchema = z
  .strictObject({
    of: z
      .enum(["form", "query", "json"])
      .describe("Source of the parameters: the form, the query, or the members of the JSON body."),
    names: z
      .array(nameField)
      .min(1)
      .max(64)
      .optional()
      .describe("Names of the parameters to include if present. Includes all by default."),
    omit: z.array(nameField).max(16).default([]).describe("Names of parameters to leave out."),
    order: z
      .enum(["name", "listed"])
      .default("name")
      .describe("Order of the parameters: by name (UTF-16 code units), or as listed in `names`."),
    pair: pairField
      .default("{{name}}{{value}}")
      .describe("Format of one parameter. A repeated name contributes its distinct values, sorted."),
    between: separator("Text between two parameters.").default(""),
  })
  .describe("Defines the text of {{parameters}}.");

const signedHeadersSchema = z
  .strictObject({
    listedIn: messageSourceSchema.describe("Location of the list of signed header names."),
    separator: z
      .string()
      .min(1)
      .max(4)
      .default(",")
      .describe("Separators between names. Each character of this text is a separator."),
    pair: pairField
      .default("{{name}}:{{value}}")
      .describe("Format of one header, with its name in lower case."),
    between: separator("Text between two headers.").default("\n"),
  })
  .describe(
    "Defines the text of {{signedHeaders}}: the headers that the sender lists as signed, at most 32.",
  );

/** Settings of a message signature: where it is, which text it covers, and which other facts it proves. */
export const signedMessageSettings = {
  in: z
    .enum(["header", "query", "body"])
    .default("header")
    .describe("Part of the request that contains the signature."),
  name: nameField.describe(
    "Name of the header (case-insensitive) or query parameter with the signature, or its path in the body ($.signature; for forms, $.field).",
  ),
  alsoNamed: z
    .array(nameField)
    .max(15)
    .default([])
    .describe("Other names where a signature may occur. One valid signature suffices."),
  prefix: z.string().min(1).max(64).optional().describe("Text before the signature, such as sha256=."),
  items: itemsSchema.optional(),
  encoding: z.enum(ENCODINGS).default("hex").describe("Encoding of the signature."),
  template: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      "Template of the signed text; the body by default. Placeholders: {{body}}, {{timestamp}}, {{id}}, {{method}}, {{url}} (complete, as the sender knows it), {{path}}, {{target}} (path and query), {{host}}, {{secret}}, {{parameters}}, {{signedHeaders}}, {{header:name}}, {{query:name}}, {{body:$.path}}, {{item:key}}. Filters follow after |: md5, sha1, sha256, sha384, sha512 (in hex unless hex, base64 or base64url follows), crc32, lower, upper, trim, uriEncode, uriDecode, optional (empty if the value is missing).",
    ),
  parameters: parametersSchema.optional(),
  signedHeaders: signedHeadersSchema.optional(),
  timestamp: z
    .strictObject({
      source: messageSourceSchema.describe("Location of the timestamp."),
      unit: z
        .enum(["seconds", "milliseconds", "rfc3339"])
        .default("seconds")
        .describe("Unit of the timestamp: seconds or milliseconds since 1970, or an RFC 3339 text."),
    })
    .optional()
    .describe("Time of signing. The signature must cover it."),
  toleranceSeconds: z
    .int()
    .min(1)
    .max(604_800)
    .optional()
    .describe(
      "Maximum difference in seconds between the timestamp and the time of receipt, in either direction. Needs `timestamp`.",
    ),
  deliveryId: messageSourceSchema
    .optional()
    .describe("Location of the delivery's id, used when no idPath applies. The signature must cover it."),
  bodyHash: z
    .strictObject({
      source: requestSourceSchema.describe(
        "Location of the hash in the request. The signature must cover it.",
      ),
      algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256").describe("Hash function."),
      encoding: z.enum(ENCODINGS).default("hex").describe("Encoding of the hash."),
      prefix: z.string().min(1).max(64).optional().describe("Text before the hash."),
    })
    .optional()
    .describe(
      "A hash of the body that the sender signs instead of the body. Inlet compares it with the body.",
    ),
  signsBody: z
    .boolean()
    .default(true)
    .describe(
      "Whether the signature must cover the whole body. Set it to false for senders that sign only parts of it.",
    ),
  bindDedupe: z
    .enum(["none", "signedBytes"])
    .default("none")
    .describe(
      "`signedBytes` remembers the signed bytes for the dedupe window, in addition to the event ids. The same bytes under another id or type are quarantined as replayed. Use it for senders whose signature does not cover id and type, and whose signed bytes differ between events. If an event has no id, its id is derived from the signed bytes.",
    ),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .max(1_024)
    .optional()
    .describe(
      "Base URL before /hooks/ as the sender knows it, if it differs from the gateway's own base URL.",
    ),
  allowWeak: z
    .boolean()
    .default(false)
    .describe(
      "Allows weak methods, for senders that support no other: HMAC-MD5, RSA-SHA1, checksums, and plain hashes over a text with the secret.",
    ),
} as const;

const signedMessage = z.object(signedMessageSettings);
export type SignedMessageSettings = z.output<typeof signedMessage>;
