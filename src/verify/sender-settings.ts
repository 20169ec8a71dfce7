import { z } from "zod";
import { anyOfSettings } from "./any-of.ts";
import { asymmetricSettings } from "./asymmetric.ts";
import { handshakeSchema } from "./handshake/settings.ts";
import { hmacSettings } from "./hmac.ts";
import { jwtSettings } from "./jwt.ts";
import { none } from "./none.ts";
import { standardWebhooksSettings } from "./standard-webhooks.ts";
import { tokenSettings } from "./token.ts";

const single = [
  hmacSettings,
  standardWebhooksSettings,
  asymmetricSettings,
  jwtSettings,
  tokenSettings,
] as const;

/** How a sender is known, by any scheme. */
export const verificationSchema = z.discriminatedUnion("scheme", [
  none.settings,
  ...single,
  anyOfSettings(single),
]);

export const handshakesField = z
  .array(handshakeSchema)
  .max(16)
  .describe("Requests that are no deliveries, and how they are answered; the first that fits.");

export const readAsField = z
  .enum(["application/json", "application/x-www-form-urlencoded"])
  .describe("The Content-Type by which bodies are read, for senders that say another.");
