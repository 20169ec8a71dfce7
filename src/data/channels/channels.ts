import { sql } from "kysely";
import type { ChannelConfig, ChannelIdentity } from "../../event/channel.ts";
import type { StoredRouting } from "../../event/intake.ts";
import { inPages } from "../../lib/pages.ts";
import { createChannelId } from "../../lib/secrets/channel-id.ts";
import { recordChange, recordChanges } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { followChannel, releaseChannel } from "../registrations/registrations.ts";
import { type Removal, recordRemovals } from "../removals.ts";
import type { AppRow, BlueprintChannel, ChannelRow } from "../tables.ts";
import { sealAddress } from "./address-columns.ts";
import { sealSecrets } from "./channel-secrets.ts";
import { readyState } from "./channel-states.ts";
import { toDedupeChange } from "./dedupe-change.ts";
import { insertTopics, retireTopics, writeTopics } from "./topics.ts";

/** Writable fields of a channel. The channel kind has already parsed the config and split off the secrets. */
export interface ChannelContent {
  readonly title: string | null;
  readonly config: BlueprintChannel["config"];
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly events: BlueprintChannel["events"];
  readonly retention: ChannelConfig["retention"];
  readonly state: "active" | "needsSetup";
  /** Id of a connection in the same organization. `undefined` keeps the current connection. */
  readonly connectionId?: string | null;
}

export type NewChannel = ChannelContent &
  Pick<BlueprintChannel, "uid" | "kind"> & {
    /** Whether the blueprint of the app defines this channel. Defaults to false. */
    readonly fromBlueprint?: boolean;
    /** Set for the intake of a blueprint, which takes the place of the app. */
    readonly routing?: StoredRouting;
  };

export interface WriteContext {
  readonly keyring: Keyring;
  readonly nowMs: number;
}

export async function insertChannel(
  trx: Trx,
  app: Pick<AppRow, "id" | "organizationId">,
  channel: NewChannel,
  context: WriteContext,
): Promise<ChannelRow> {
  const [row] = await insertChannels(trx, app, [channel], context);
  if (row === undefined) throw new Error("inserting a channel returned no row");
  return row;
}

/**
 * Adds channels and their topics to an app, with a constant number of statements.
 *
 * @throws unique violation of `channels_uid` if the app already has a channel with one of the uids
 */
export async function insertChannels(
  trx: Trx,
  app: Pick<AppRow, "id" | "organizationId">,
  channels: readonly NewChannel[],
  { keyring, nowMs }: WriteContext,
): Promise<readonly ChannelRow[]> {
  if (channels.length === 0) return [];
  // Reserve the channel numbers before the insert, because sealed secrets are bound to them.
  const { rows: numbers } = await sql<{ number: number }>`
    SELECT nextval(pg_get_serial_sequence('channels', 'number')) AS number
    FROM generate_series(1, ${channels.length})`.execute(trx);
  const values = channels.map((channel, at) => {
    const number = Number(numbers[at]?.number);
    return {
      number,
      ...sealAddress(keyring, number, createChannelId(keyring.channelIdKey)),
      appId: app.id,
      organizationId: app.organizationId,
      uid: channel.uid,
      kind: channel.kind,
      ...columnsOf(keyring, number, channel, channel.connectionId ?? null),
      fromBlueprint: channel.fromBlueprint === true,
      ...(channel.routing && { routing: JSON.stringify(channel.routing) }),
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    };
  });
  const made = await trx.insertInto("channels").values(values).returningAll().execute();
  // RETURNING does not guarantee an order.
  const byNumber = new Map(made.map((row) => [row.number, row]));
  const rows = values.flatMap(({ number }) => byNumber.get(number) ?? []);
  const written = channels.map((channel, at) => ({ ...channel, number: values[at]?.number ?? 0 }));
  await insertTopics(trx, app, written, nowMs);
  for (const row of rows) if (row.config.registration) await followChannel(trx, row, nowMs);
  await recordChanges(
    trx,
    rows.map(({ number }) => ({ kind: "channel", key: String(number) })),
  );
  return rows;
}

/** Replaces the writable fields of a channel. Returns `undefined` if the row no longer has the version of `before`. */
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
      ...toDedupeChange(before, content, nowMs),
      // A manually paused channel stays paused when its config changes.
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
  await followChannel(trx, row, nowMs);
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
  sealedSettings: sealSecrets(keyring, number, secrets),
  events: JSON.stringify(events),
  connectionId,
  state: readyState(state, { config, connectionId }),
});

/**
 * Deletes a channel with its secrets, and schedules the removal of its data in Redis. Its topics stay until retention has trimmed
 * them, unless `purge` is set.
 */
export async function deleteChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly purge: boolean; readonly nowMs: number },
): Promise<void> {
  const topics = await retireTopics(trx, row.number, options.nowMs);
  await releaseChannel(trx, row.number, options.nowMs);
  await trx.deleteFrom("channels").where("number", "=", row.number).execute();
  await recordChange(trx, { kind: "channel", key: String(row.number) });
  const removal: Removal = { kind: "channel", channel: identityOf(row), topics, purge: options.purge };
  await recordRemovals(trx, [removal], options.nowMs);
}

export function identityOf(row: ChannelRow): ChannelIdentity {
  const { number, uid, kind, appId, organizationId } = row;
  return { number, uid, kind, appId, organizationId };
}

const PAGE = 500;

export const pageChannels = (db: Queryable) =>
  inPages("number", 0, PAGE, (after, limit) =>
    db
      .selectFrom("channels")
      .select(["number", "uid", "kind", "appId", "organizationId", "config", "routing"])
      .where("number", ">", after)
      .orderBy("number")
      .limit(limit)
      .execute(),
  );
