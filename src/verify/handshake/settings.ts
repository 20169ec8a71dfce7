import { z } from "zod";
import { pinsField } from "../keys/settings.ts";
import { nameField, requestSourceSchema } from "../message/source.ts";

export const HANDSHAKE_METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "POST"] as const;

/** Names a secret that is not what deliveries are signed with. */
export const secretName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, "must be a letter, then letters, digits, _ and -");

const conditionSchema = requestSourceSchema
  .safeExtend({
    equals: z.string().max(1_024).optional().describe("It is there with this value, once."),
    equalsSecret: secretName
      .optional()
      .describe(
        "It is there with the value of the channel's secret of this name, compared in constant time.",
      ),
    absent: z.literal(true).optional().describe("It is not there."),
  })
  .describe("One thing that must be so; without a further word: it is there, once, and not empty.");

const whenSchema = z.strictObject({
  method: z.enum(HANDSHAKE_METHODS).describe("The method."),
  all: z
    .array(conditionSchema)
    .max(16)
    .default([])
    .describe("What else must be so. A POST needs at least one: it could be a delivery."),
});

const template = (description: string) => z.string().max(4_096).describe(description);

const respondSchema = z.strictObject({
  status: z
    .union([z.literal(200), z.literal(201), z.literal(202), z.literal(204)])
    .default(200)
    .describe("The status."),
  contentType: z
    .enum(["text/plain", "application/json"])
    .default("text/plain")
    .describe("Of the body; in JSON each value that is put in is escaped."),
  headers: z
    .record(nameField, template("A template."))
    .default({})
    .describe("Further headers, as templates."),
  body: template(
    "A template: {{query:name}}, {{header:name}}, {{body:$.path}}, and {{secret:name}} for a secret that has a name, each with filters after |: hmac-sha1, hmac-sha256, hmac-sha512 (keyed with the channel's first secret that is valid, over letters, digits and - _ ~ + / only, so that no delivery can be signed by it; to hex unless hex, base64 or base64url follows), sha256, lower, upper, trim, optional.",
  ).default(""),
});

/** The fields of a handshake, each by itself. */
export const handshakeShape = z.strictObject({
  title: z.string().min(1).max(255).describe("What it is, for people."),
  when: whenSchema.describe("What the request looks like."),
  requireVerified: z
    .boolean()
    .default(true)
    .describe("It must be verified as a delivery is; false for senders that do not sign it."),
  captureSecret: requestSourceSchema
    .optional()
    .describe(
      "Where it brings the secret that deliveries will be signed with: kept once, while the channel has none.",
    ),
  visit: requestSourceSchema
    .safeExtend({ pinned: pinsField })
    .optional()
    .describe(
      "Where it brings an address that must be called (GET) before it is answered; it must be verified.",
    ),
  respond: respondSchema.prefault({}).describe("What it is answered."),
});
export type Handshake = z.output<typeof handshakeShape>;
export type Condition = Handshake["when"]["all"][number];
export type ReplySettings = Handshake["respond"];
