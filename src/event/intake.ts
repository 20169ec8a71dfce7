import { z } from "zod";
import { type ChannelKindName, channelUidSchema } from "./channel.ts";
import { pathText } from "./config-fields.ts";

/** Stored kind and uid of intakes. An intake receives deliveries like a webhook channel. */
export const INTAKE_KIND = "intake";
export const INTAKE_UID = "intake";

/** Maximum length of a route key. Longer values count as missing. */
export const MAX_ROUTE_KEY_CHARS = 512;

export const routingSchema = z.object({
  channel: channelUidSchema.describe(
    "Uid of the blueprint's webhook channel that receives the items in each install.",
  ),
  routeBy: z
    .array(pathText)
    .min(1)
    .max(8)
    .describe(
      "Paths of an item's route key, the most specific first. The first path that yields a string, number or boolean decides. `$` is the item; `$headers`, `$query` and `$body` are those of the delivery.",
    ),
  trustUnsigned: z
    .boolean()
    .default(false)
    .describe(
      "Whether `routeBy` may read values that the verification does not sign. Needs `verification.bindDedupe: signedBytes`: the same signed bytes with another route key are quarantined as `replayed`.",
    ),
});

/** How an intake routes the items of its deliveries to the installs of its blueprint. */
export type Routing = z.output<typeof routingSchema>;

/** Routing of an intake as stored with its channel row. */
export interface StoredRouting extends Routing {
  /** Kind of the channels that receive the items. */
  readonly kind: ChannelKindName;
  /** Set until a store approves the blueprint's first intake. Until then, the intake is paused. */
  readonly awaitsFirstApproval?: true;
}

/** Settings of an intake without its secrets. They are part of each version of its blueprint. */
export interface IntakeSettings extends Routing {
  readonly config: Readonly<Record<string, unknown>>;
}
