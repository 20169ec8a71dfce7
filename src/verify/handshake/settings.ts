import { z } from "zod";
import { pinsField } from "../keys/settings.ts";
import { nameField, requestSourceSchema } from "../message/source.ts";

export const HANDSHAKE_METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "POST"] as const;

/** Name of a secret. Handshakes use named secrets, while secrets without a name verify deliveries. */
export const secretName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, "must be a letter, then letters, digits, _ and -");

const conditionSchema = requestSourceSchema
  .safeExtend({
    equals: z.string().max(1_024).optional().describe("The value occurs exactly once and equals this text."),
    equalsSecret: secretName
      .optional()
      .describe("The value equals the channel's secret of this name. Compared in constant time."),
    absent: z.literal(true).optional().describe("The request has no such value."),
  })
  .describe("A condition on one value. By default the value must occur exactly once and not be empty.");

const whenSchema = z.strictObject({
  method: z.enum(HANDSHAKE_METHODS).describe("HTTP method of the request."),
  all: z
    .array(conditionSchema)
    .max(16)
    .default([])
    .describe(
      "Further conditions, all of which must hold. A POST needs at least one, because it could be a delivery.",
    ),
});

const template = (description: string) => z.string().max(4_096).describe(description);

const respondSchema = z.strictObject({
  status: z
    .union([z.literal(200), z.literal(201), z.literal(202), z.literal(204)])
    .default(200)
    .describe("Status of the response."),
  contentType: z
    .enum(["text/plain", "application/json"])
    .default("text/plain")
    .describe("Content type of the body. In JSON, inserted values are escaped."),
  headers: z
    .record(nameField, template("A template."))
    .default({})
    .describe("Additional headers, as templates."),
  body: template(
    "Template of the body. Placeholders: {{query:name}}, {{header:name}}, {{body:$.path}}, and {{secret:name}} for a named secret. Filters follow after |: hmac-sha1, hmac-sha256, hmac-sha512, sha256, lower, upper, trim, optional. HMAC filters use the channel's first valid secret and accept only letters, digits and - _ ~ + /, so that they cannot sign a delivery. Hashes are written in hex unless hex, base64 or base64url follows.",
  ).default(""),
});

/** The fields of a handshake. Checks that involve several fields are added in `schema.ts`. */
export const handshakeShape = z.strictObject({
  title: z.string().min(1).max(255).describe("Title of the handshake, shown to people."),
  when: whenSchema.describe("Conditions that identify the request."),
  requireVerified: z
    .boolean()
    .default(true)
    .describe(
      "Whether the request must pass verification. Set it to false for senders that do not sign handshakes.",
    ),
  captureSecret: requestSourceSchema
    .optional()
    .describe(
      "Location of the secret that the sender will sign deliveries with. Inlet stores it only while the channel has no secret.",
    ),
  visit: requestSourceSchema
    .safeExtend({ pinned: pinsField })
    .optional()
    .describe("Location of a URL that Inlet calls (GET) before it responds. Requires `requireVerified`."),
  respond: respondSchema.prefault({}).describe("The response."),
});
export type Handshake = z.output<typeof handshakeShape>;
export type Condition = Handshake["when"]["all"][number];
export type ReplySettings = Handshake["respond"];
