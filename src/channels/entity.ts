import { z } from "zod";
import { openAddress } from "../data/channels/address-columns.ts";
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

/** The permission without which channels are answered without their addresses. */
export const SEES_ADDRESSES = "channels.read";

export interface EntityDeps {
  readonly db: Queryable;
  readonly keyring: Pick<Keyring, "open">;
  readonly channelKinds: ChannelKinds;
  /** The part of a channel's address before `/hooks/{channelId}`. */
  readonly hooksUrl: string;
}

/** The API document says which names there are: those of the gateway's kinds. */
export const channelKindNameSchema = z
  .string()
  .meta({ id: "ChannelKindName", description: "A way for events to come in." });

/** The channel as the API answers it: never with a secret setting. */
export const channelSchema = z
  .object({
    id: z
      .string()
      .nullable()
      .meta({
        description: `Its address: a credential, shown to callers with \`${SEES_ADDRESSES}\`; null to others, who name it by its uid.`,
        example: CHANNEL_ID_EXAMPLE,
      }),
    uid: channelUidSchema,
    appId: id("app"),
    organizationId: id("org"),
    kind: channelKindNameSchema,
    title: z.string().nullable(),
    config: z.record(z.string(), z.unknown()),
    events: z.array(definitionSchema),
    connectionId: z.string().nullable(),
    state: z.enum([...CHANNEL_STATES, "idle"]).meta({
      description:
        "`idle`: it would fetch, but no subscription covers it. `needsSetup`: a secret is missing, its hooks answer 401. `needsConnection`: it fetches nothing before it has one. `needsReauth`, `error`: its credentials or its requests are refused again and again, or its settings make none: it is tried each quarter of an hour until that succeeds, somebody resumes it or mends what is wrong.",
    }),
    stateReason: z
      .enum(["noSubscription"])
      .nullable()
      .meta({ description: "Why it is `idle`; null in any other state." }),
    url: z
      .string()
      .nullable()
      .meta({
        description: `Where to send deliveries; null where they are fetched, for a channel of the system app, which takes none, and to callers without \`${SEES_ADDRESSES}\`.`,
        example: URL_EXAMPLE,
      }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Channel", description: "One way for an app's events to come in.", configOf: "answered" });
export type Channel = Shown<z.output<typeof channelSchema>>;

export const seesAddresses = (caller: Pick<Caller, "permissions">): boolean => holds(caller, SEES_ADDRESSES);

/** The channels as the API answers them to that caller. @throws UnavailableError */
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
  const isShown = seesAddresses(caller);
  return rows.map((row) => {
    const address = isShown ? openAddress(deps.keyring, row) : null;
    return renderChannel(deps, row, { address, isIdle: idle.has(row.number) });
  });
}

function renderChannel(
  { channelKinds, hooksUrl }: EntityDeps,
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
    connectionId: row.connectionId,
    state: isIdle ? "idle" : row.state,
    stateReason: isIdle ? "noSubscription" : null,
    url: isAddressed && address !== null ? `${hooksUrl}/hooks/${address}` : null,
    createdAt: formatTimestamp(row.createdAt.getTime()),
    updatedAt: formatTimestamp(row.updatedAt.getTime()),
  };
}
