import { sql } from "kysely";
import type { ChannelIdentity, CommonSettings } from "../../event/channel.ts";
import { inPages } from "../../lib/pages.ts";
import { createChannelId } from "../../lib/secrets/channel-id.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { type Removal, recordRemovals } from "../removals.ts";
import type { AppRow, BlueprintChannel, ChannelRow } from "../tables.ts";
import { plainAddress, sealAddress } from "./address-columns.ts";
import { sealSettings } from "./channel-secrets.ts";
import { readyState } from "./channel-states.ts";
import { retireTopics, writeTopics } from "./topics.ts";

/** The fields of a channel: settings that its kind has accepted, the secret ones apart. */
export interface ChannelContent {
  readonly title: string | null;
  readonly config: BlueprintChannel["config"];
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly events: BlueprintChannel["events"];
  readonly retention: CommonSettings["retention"];
  readonly state: "active" | "needsSetup";
  /** Of the same organization; undefined: the one of before, or none. */
  readonly connectionId?: string | null;
}

export type NewChannel = ChannelContent &
  Pick<BlueprintChannel, "uid" | "kind"> & {
    /** That it stands in the blueprint of its app; default false. */
    readonly fromBlueprint?: boolean;
  };

export interface WriteContext {
  readonly keyring: Keyring;
  readonly nowMs: number;
}

/**
 * Adds a channel to an app of the transaction's, with its topics.
 *
 * @throws a unique violation of `channels_uid` when the app has a channel of that uid.
 */
export async function insertChannel(
  trx: Trx,
  app: Pick<AppRow, "id" | "organizationId">,
  channel: NewChannel,
  { keyring, nowMs }: WriteContext,
): Promise<ChannelRow> {
  // The number is needed before the row stands: secrets are bound to it.
  const { rows } = await sql<{ number: number }>`
    SELECT nextval(pg_get_serial_sequence('channels', 'number')) AS number`.execute(trx);
  const number = Number(rows[0]?.number);
  const { connectionId = null } = channel;
  const address = createChannelId(keyring.channelIdKey);
  const row = await trx
    .insertInto("channels")
    .values({
      number,
      ...sealAddress(keyring, number, address),
      id: await plainAddress(trx, address),
      appId: app.id,
      organizationId: app.organizationId,
      uid: channel.uid,
      kind: channel.kind,
      ...columnsOf(keyring, number, channel, connectionId),
      fromBlueprint: channel.fromBlueprint === true,
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await writeTopics(trx, identityOf(row), channel, nowMs);
  await recordChange(trx, { kind: "channel", key: String(number) });
  return row;
}

/** Replaces what is written of the channel, if it still is the version given; undefined where it no longer is. */
export async function updateChannel(
  trx: Trx,
  before: ChannelRow,
  content: ChannelContent,
  { keyring, nowMs }: WriteContext,
): Promise<ChannelRow | undefined> {
  const { connectionId = before.connectionId } = content;
  const row = await trx
    .updateTable("channels")
    .set({
      ...columnsOf(keyring, before.number, content, connectionId),
      // A channel stopped by hand stays so whatever is written.
      ...(before.state === "paused" && { state: "paused" }),
      version: before.version + 1,
      updatedAt: new Date(nowMs),
    })
    .where("number", "=", before.number)
    .where("version", "=", before.version)
    .returningAll()
    .executeTakeFirst();
  if (!row) return undefined;
  await writeTopics(trx, identityOf(row), content, nowMs);
  await recordChange(trx, { kind: "channel", key: String(row.number) });
  return row;
}

const columnsOf = (
  keyring: Keyring,
  number: number,
  { title, config, secrets, events, state }: ChannelContent,
  connectionId: string | null,
) => ({
  title,
  config: JSON.stringify(config),
  sealedSettings: sealSettings(keyring, number, secrets),
  events: JSON.stringify(events),
  connectionId,
  state: readyState(state, { config, connectionId }),
});

/**
 * Deletes a channel with its secrets. Its topics stay until retention or, with `purge`, go with what else it leaves on the
 * bus, which is noted to be cleared away.
 */
export async function deleteChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly purge: boolean; readonly nowMs: number },
): Promise<void> {
  const topics = await retireTopics(trx, row.number, options.nowMs);
  await trx.deleteFrom("channels").where("number", "=", row.number).execute();
  await recordChange(trx, { kind: "channel", key: String(row.number) });
  const removal: Removal = { kind: "channel", channel: identityOf(row), topics, purge: options.purge };
  await recordRemovals(trx, [removal], options.nowMs);
}

/** The part of a channel's row that never changes. */
export function identityOf(row: ChannelRow): ChannelIdentity {
  const { number, uid, kind, appId, organizationId } = row;
  return { number, uid, kind, appId, organizationId };
}

const PAGE = 500;

/** All channels with their settings, the secret ones left out. */
export const pageChannels = (db: Queryable) =>
  inPages("number", 0, PAGE, (after, limit) =>
    db
      .selectFrom("channels")
      .select(["number", "uid", "kind", "appId", "organizationId", "config"])
      .where("number", ">", after)
      .orderBy("number")
      .limit(limit)
      .execute(),
  );
