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
      .describe("Separators between items. Each character of this setting is a separator."),
    assign: z
      .string()
      .length(1)
      .optional()
      .describe(
        "Character between the key and the value of an item. Without this setting, items have no keys.",
      ),
    key: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe(
        "Key of the items that contain signatures, such as v1. Without this setting, every item is a signature.",
      ),
  })
  .describe(
    "How to split a value with several items, such as t=1700000000,v1=…,v1=…. Inlet removes spaces around items and double quotes around values.",
  );

const pairField = z.string().min(1).max(64);

const parametersSchema = z
  .strictObject({
    of: z
      .enum(["form", "query", "json"])
      .describe(
        "Part of the request that contains the parameters: the form, the query, or the members of the JSON body.",
      ),
    names: z
      .array(nameField)
      .min(1)
      .max(64)
      .optional()
      .describe("Names of the parameters to include if they are present. Default: all parameters."),
    omit: z.array(nameField).max(16).default([]).describe("Names of parameters to exclude."),
    order: z
      .enum(["name", "listed"])
      .default("name")
      .describe("Order of the parameters: by name (UTF-16 code units), or as listed in `names`."),
    pair: pairField
      .default("{{name}}{{value}}")
      .describe(
        "Format of one parameter. A parameter that occurs several times is formatted once for each distinct value, in sorted order.",
      ),
    between: separator("Separator between parameters.").default(""),
  })
  .describe("How to build the text of the placeholder {{parameters}}.");

const signedHeadersSchema = z
  .strictObject({
    listedIn: messageSourceSchema.describe("Location of the list of signed header names in the request."),
    separator: z
      .string()
      .min(1)
      .max(4)
      .default(",")
      .describe("Separators between header names. Each character of this setting is a separator."),
    pair: pairField
      .default("{{name}}:{{value}}")
      .describe("Format of one header. The header name is in lower case."),
    between: separator("Separator between headers.").default("\n"),
  })
  .describe(
    "How to build the text of the placeholder {{signedHeaders}}, from at most 32 headers that the sender lists as signed.",
  );

/** Config of a message signature: where the signature is, which text it covers, and what else it proves. */
export const signedMessageFields = {
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
    .describe("Alternative names of the header, parameter or field. One valid signature is enough."),
  prefix: z.string().min(1).max(64).optional().describe("Prefix of the signature, such as sha256=."),
  items: itemsSchema.optional(),
  encoding: z.enum(ENCODINGS).default("hex").describe("Encoding of the signature."),
  template: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe(
      "Template of the text that the sender signs. Default: the body. Placeholders: {{body}}, {{timestamp}}, {{id}}, {{method}}, {{url}} (complete, as the sender knows it), {{path}}, {{target}} (path and query), {{host}}, {{secret}}, {{parameters}}, {{signedHeaders}}, {{header:name}}, {{query:name}}, {{body:$.path}}, {{item:key}}. Filters follow after |: md5, sha1, sha256, sha384, sha512 (in hex unless hex, base64 or base64url follows), crc32, lower, upper, trim, uriEncode, uriDecode, optional (empty if the value is missing).",
    ),
  parameters: parametersSchema.optional(),
  signedHeaders: signedHeadersSchema.optional(),
  timestamp: z
    .strictObject({
      source: messageSourceSchema.describe("Location of the timestamp in the request."),
      unit: z
        .enum(["seconds", "milliseconds", "rfc3339"])
        .default("seconds")
        .describe("Unit of the timestamp: seconds or milliseconds since 1970, or an RFC 3339 text."),
    })
    .optional()
    .describe("Time at which the sender signed the delivery. The signature must cover this value."),
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
    .describe(
      "Location of the delivery's id, which Inlet uses when no `idPath` applies. The signature must cover this value.",
    ),
  bodyHash: z
    .strictObject({
      source: requestSourceSchema.describe(
        "Location of the body hash in the request. The signature must cover this value.",
      ),
      algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256").describe("Hash function."),
      encoding: z.enum(ENCODINGS).default("hex").describe("Encoding of the hash."),
      prefix: z.string().min(1).max(64).optional().describe("Prefix of the hash, such as sha256=."),
    })
    .optional()
    .describe(
      "Hash of the body, for senders that sign this hash instead of the body itself. Inlet checks that the body matches.",
    ),
  signsBody: z
    .boolean()
    .default(true)
    .describe(
      "Whether the signature must cover the whole body. Set this to false for senders that sign only parts of the body.",
    ),
  noBody: z
    .literal(true)
    .optional()
    .describe(
      "Accepts only requests without a body. For senders that sign only the URL of their GET requests, so that the signature cannot be used with a body.",
    ),
  bindDedupe: z
    .enum(["none", "signedBytes"])
    .default("none")
    .describe(
      "With `signedBytes`, Inlet remembers the signed bytes for the dedupe window, in addition to the event ids. A delivery with the same bytes but another id or type is quarantined as a replay. Use this setting if the signature covers neither id nor type and the signed bytes differ between events. Events without an id get one derived from the signed bytes.",
    ),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .max(1_024)
    .optional()
    .describe(
      "Part of the channel's address before /hooks/ as the sender knows it, if it differs from the gateway's hooks URL.",
    ),
  allowWeak: z
    .boolean()
    .default(false)
    .describe(
      "Allows weak methods for senders that support no others: HMAC-MD5, RSA-SHA1, checksums, and plain hashes of a text that contains the secret.",
    ),
} as const;

const signedMessage = z.object(signedMessageFields);
export type SignedMessageConfig = z.output<typeof signedMessage>;
