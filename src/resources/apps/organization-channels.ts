import { z } from "zod";
import { hasAddress } from "../../data/channels/address-columns.ts";
import type { ChannelKindName } from "../../event/channel.ts";
import type { Deps } from "../kit/deps.ts";

/** Query parameters of lists that cover all apps of the organization. */
export const placeFilters = {
  appId: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe("Id of an app. Selects the items of this app. Default: all apps."),
  channel: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      "Id or uid of a channel. Selects the items of this channel, in all selected apps with this uid.",
    ),
} as const;

export type PlaceFilters = z.output<z.ZodObject<typeof placeFilters>>;

/** Selects channels of apps in the organization. Intakes belong to blueprints, so they are left out. */
export const selectChannels = (
  { db, keyring }: Pick<Deps, "db" | "keyring">,
  organizationId: string,
  { appId, channel, kinds }: PlaceFilters & { readonly kinds?: readonly ChannelKindName[] },
) =>
  db
    .selectFrom("channels")
    .where("organizationId", "=", organizationId)
    .where("kind", "<>", "intake")
    .$if(appId !== undefined, (query) => query.where("appId", "=", appId ?? ""))
    .$if(kinds !== undefined, (query) => query.where("kind", "in", kinds ?? []))
    .$if(channel !== undefined, (query) =>
      query.where((eb) => eb.or([hasAddress(keyring, channel ?? ""), eb("uid", "=", channel ?? "")])),
    );

/** Returns the internal ids of the selected channels. */
export async function findPlaces(
  deps: Pick<Deps, "db" | "keyring">,
  organizationId: string,
  filters: PlaceFilters,
): Promise<readonly number[]> {
  const rows = await selectChannels(deps, organizationId, filters).select("number").execute();
  return rows.map(({ number }) => number);
}
