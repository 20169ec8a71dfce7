import { z } from "zod";
import { pinsField } from "../keys/config.ts";
import { nameField, requestSourceSchema } from "../message/source.ts";

export const HANDSHAKE_METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "POST"] as const;

/** Name of a secret that only handshakes use. Secrets without a name verify deliveries. */
export const secretName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, "must start with a letter, followed by letters, digits, _ or -");

const conditionSchema = requestSourceSchema
  .safeExtend({
    equals: z
      .string()
      .max(1_024)
      .optional()
      .describe("Text that the value must equal. The value must occur exactly once."),
    equalsSecret: secretName
      .optional()
      .describe(
        "Name of one of the channel's secrets. The value must equal that secret. Inlet compares them in constant time.",
      ),
    absent: z.literal(true).optional().describe("Whether the value must be missing from the request."),
  })
  .describe(
    "A condition on one value of the request. By default, the value must occur exactly once and must not be empty.",
  );

const whenSchema = z.strictObject({
  method: z.enum(HANDSHAKE_METHODS).describe("HTTP method that the request must have."),
  all: z
    .array(conditionSchema)
    .max(16)
    .default([])
    .describe(
      "Conditions that the request must meet. POST needs at least one, because the request could otherwise be a delivery.",
    ),
});

const template = (description: string) => z.string().max(4_096).describe(description);

const respondSchema = z.strictObject({
  status: z
    .union([z.literal(200), z.literal(201), z.literal(202), z.literal(204)])
    .default(200)
    .describe("HTTP status of the response."),
  contentType: z
    .enum(["text/plain", "application/json"])
    .default("text/plain")
    .describe("Content type of the response body. Inlet escapes values that it inserts into JSON."),
  headers: z
    .record(nameField, template("A template."))
    .default({})
    .describe("Additional response headers, whose values are templates."),
  body: template(
    "Template of the response body. Placeholders: {{query:name}}, {{header:name}}, {{body:$.path}}, and {{secret:name}} for a named secret. Filters follow after |: hmac-sha1, hmac-sha256, hmac-sha512, sha256, lower, upper, trim, optional. HMAC filters use the channel's first valid secret and accept only letters, digits and - _ ~ + /, so that they cannot sign a delivery. Hashes are written in hex unless hex, base64 or base64url follows.",
  ).default(""),
});

/** `schema.ts` adds the checks that involve several fields. */
export const handshakeShape = z.strictObject({
  title: z.string().min(1).max(255).describe("Title of the handshake for display in the console."),
  when: whenSchema.describe("Conditions that identify the handshake request."),
  requireVerified: z
    .boolean()
    .default(true)
    .describe(
      "Whether the request must pass verification. Set it to false for senders that do not sign handshakes.",
    ),
  captureSecret: requestSourceSchema
    .optional()
    .describe(
      "Location of the secret in the request. Inlet stores the secret for verifying deliveries, unless the channel already has one.",
    ),
  visit: requestSourceSchema
    .safeExtend({ pinned: pinsField })
    .optional()
    .describe(
      "Location of a URL in the request that Inlet calls with GET before it responds. Needs `requireVerified`.",
    ),
  respond: respondSchema.prefault({}).describe("Response to the handshake."),
});
export type Handshake = z.output<typeof handshakeShape>;
export type Condition = Handshake["when"]["all"][number];
export type ReplyConfig = Handshake["respond"];
