import { z } from "zod";
import { openAddress } from "../data/channels/address-columns.ts";
import { listSecretNames } from "../data/channels/channel-secrets.ts";
import { findIdleSources } from "../data/channels/sources.ts";
import type { Queryable } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import type { ChannelRow } from "../data/tables.ts";
import { CHANNEL_STATES, channelUidSchema } from "../event/channel.ts";
import { definitionSchema } from "../event/definition.ts";
import { holds } from "../http/callers/authorize.ts";
import type { Caller } from "../http/context.ts";
import { id, type Shown, timestamp } from "../http/fields.ts";
import { formatTimestamp } from "../lib/clock.ts";
import type { ChannelKinds } from "./kind.ts";

export const CHANNEL_ID_EXAMPLE = "ch_6v3k9q2x7r1m5t8b4n0c6z2d9f3g7h1j5p8s";
const URL_EXAMPLE = `https://hooks.example.com/hooks/${CHANNEL_ID_EXAMPLE}`;

/** Permission to see channel addresses. Without it, the API returns channels without their addresses. */
export const ADDRESS_PERMISSION = "channels.read";

export interface EntityDeps {
  readonly db: Queryable;
  readonly keyring: Pick<Keyring, "open">;
  readonly channelKinds: ChannelKinds;
  /** Base URL of all channel addresses. `/hooks/{channelId}` is appended to it. */
  readonly hooksUrl: string;
}

/** Name of a channel kind. Any string is accepted here; the OpenAPI document lists the kinds that exist. */
export const channelKindNameSchema = z
  .string()
  .meta({ id: "ChannelKindName", description: "A kind of channel." });

/** A channel as the API returns it, without its secret settings. */
export const channelSchema = z
  .object({
    id: z
      .string()
      .nullable()
      .meta({
        description: `The channel's address, which is a credential. Null for callers without \`${ADDRESS_PERMISSION}\`, who name the channel by its uid.`,
        example: CHANNEL_ID_EXAMPLE,
      }),
    uid: channelUidSchema,
    appId: id("app"),
    organizationId: id("org"),
    kind: channelKindNameSchema,
    title: z.string().nullable(),
    config: z.record(z.string(), z.unknown()),
    events: z.array(definitionSchema),
    secretNames: z.array(z.string().nullable()).meta({
      description:
        "Names of the stored `secrets`, which are never returned themselves. Null is a secret that verifies deliveries. Empty for kinds without `secrets`.",
      example: [null],
    }),
    connectionId: z.string().nullable(),
    state: z.enum([...CHANNEL_STATES, "idle"]).meta({
      description:
        "`idle` means that fetching is suspended because no subscription covers the channel. `needsSetup` means that a secret is missing, so its hooks respond with 401. `needsConnection` means that it cannot fetch without a connection. `needsReauth` and `error` mean that its credentials or requests keep being rejected, or its settings produce no valid request. It retries every 15 minutes until a request succeeds, the cause is fixed, or you resume it.",
    }),
    stateReason: z
      .enum(["noSubscription"])
      .nullable()
      .meta({ description: "Reason for the state `idle`. Null in all other states." }),
    url: z
      .string()
      .nullable()
      .meta({
        description: `URL to send deliveries to. Null for channels that fetch their events, for the system app's channel, and for callers without \`${ADDRESS_PERMISSION}\`.`,
        example: URL_EXAMPLE,
      }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Channel", description: "A source of an app's events.", configOf: "answered" });
export type Channel = Shown<z.output<typeof channelSchema>>;

export const canSeeAddresses = (caller: Pick<Caller, "permissions">): boolean =>
  holds(caller, ADDRESS_PERMISSION);

/**
 * Converts database rows to API channels. Includes the address of a channel only if the caller may see it.
 *
 * @throws UnavailableError
 */
export async function renderChannels(
  deps: EntityDeps,
  caller: Pick<Caller, "permissions">,
  rows: readonly ChannelRow[],
): Promise<readonly Channel[]> {
  const fetching = rows.filter(({ kind }) => deps.channelKinds.get(kind)?.addressed === false);
  const idle = await findIdleSources(
    deps.db,
    fetching.map(({ number }) => number),
  );
  const isShown = canSeeAddresses(caller);
  return rows.map((row) => {
    const address = isShown ? openAddress(deps.keyring, row) : null;
    return renderChannel(deps, row, { address, isIdle: idle.has(row.number) });
  });
}

function renderChannel(
  { channelKinds, hooksUrl, keyring }: EntityDeps,
  row: ChannelRow,
  { address, isIdle }: { readonly address: string | null; readonly isIdle: boolean },
): Channel {
  const isAddressed = channelKinds.get(row.kind)?.addressed === true && !row.isSystem;
  return {
    id: address,
    uid: row.uid,
    appId: row.appId,
    organizationId: row.organizationId,
    kind: row.kind,
    title: row.title,
    config: row.config,
    events: row.events,
    secretNames: listSecretNames(keyring, row),
    connectionId: row.connectionId,
    state: isIdle ? "idle" : row.state,
    stateReason: isIdle ? "noSubscription" : null,
    url: isAddressed && address !== null ? `${hooksUrl}/hooks/${address}` : null,
    createdAt: formatTimestamp(row.createdAt.getTime()),
    updatedAt: formatTimestamp(row.updatedAt.getTime()),
  };
}
