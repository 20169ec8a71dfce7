import { isDeepStrictEqual } from "node:util";
import { sql } from "kysely";
import { recordAudit, recordChannelAudit } from "../../../data/accounts/audit.ts";
import type { Author } from "../../../data/accounts/audit-entry.ts";
import { recordChange } from "../../../data/changes.ts";
import {
  deleteChannel,
  insertChannel,
  updateChannel,
  type WriteContext,
} from "../../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { AppRow, ChannelRow } from "../../../data/tables.ts";
import { changedFields } from "../../../lib/json/changed-fields.ts";
import type { Deps } from "../../kit/deps.ts";
import { COUNTED_CHANNELS } from "../app-scope.ts";
import type { PlannedChannel } from "./blueprint-channels.ts";
import type { InstallSource } from "./install-source.ts";
import { appChannels } from "./queries.ts";

/** Rows that were read to plan an upgrade. The upgrade is applied only if these rows have not changed. */
export interface UpgradeBasis {
  readonly app: AppRow;
  readonly source: InstallSource;
  readonly channels: readonly ChannelRow[];
}

export interface UpgradeOptions extends WriteContext, Pick<Deps, "requireRoom"> {
  readonly author: Author;
  /** Whether to remove channels that a blueprint created but no longer contains. */
  readonly removeMissing: boolean;
  readonly purge: boolean;
}

/**
 * Applies the planned channel changes in one transaction, and returns the uids of changed and kept channels. Returns
 * `undefined` if a row in `basis` changed after planning.
 */
export async function upgradeApp(
  db: Queryable,
  basis: UpgradeBasis,
  plan: readonly PlannedChannel[],
  options: UpgradeOptions,
) {
  return db.transaction().execute(async (trx) => {
    const app = await lockBasis(trx, basis);
    if (!app) return undefined;
    const planned = new Set(plan.map(({ content }) => content.uid));
    const missing = basis.channels.filter(({ uid }) => !planned.has(uid));
    const removed = options.removeMissing ? missing.filter(({ fromBlueprint }) => fromBlueprint) : [];
    const outdated = plan.filter(isOutdated);
    const added = outdated.filter(({ before }) => !before);
    // Removed channels offset added channels, so only the net increase must fit the row limit.
    const more = Math.max(0, added.length - removed.length);
    await options.requireRoom(trx, options.author, COUNTED_CHANNELS, more);
    // Remove channels first, because an added channel may publish to the same topics as a removed channel.
    for (const row of removed) {
      await deleteChannel(trx, row, options);
      await recordChannelAudit(trx, options.author, "delete", row, options.nowMs);
    }
    for (const { before, content } of outdated) {
      if (before) {
        await updateChannel(trx, before, content, options);
        const fields = changedFields(toComparable(before), toComparable(content));
        await recordChannelAudit(trx, options.author, "update", before, options.nowMs, fields);
      } else {
        const row = await insertChannel(trx, app, content, options);
        await recordChannelAudit(trx, options.author, "create", row, options.nowMs);
      }
    }
    await markFromBlueprint(trx, app.id, [...planned]);
    await recordChange(trx, { kind: "app", key: app.id });
    await recordAudit(trx, options.author, { action: "upgrade", entity: "app", id: app.id }, options.nowMs);
    const upgraded = await trx
      .updateTable("apps")
      .set({ updatedAt: new Date(options.nowMs) })
      .where("id", "=", app.id)
      .returningAll()
      .executeTakeFirstOrThrow();
    const listUids = (rows: readonly { readonly uid: string }[]) => rows.map(({ uid }) => uid);
    return {
      app: upgraded,
      channels: await appChannels(trx, app.id).execute(),
      added: listUids(added.map(({ content }) => content)),
      updated: listUids(outdated.filter(({ before }) => before).map(({ content }) => content)),
      // Channels that are not in the blueprint and were left unchanged.
      kept: listUids(missing.filter((row) => !removed.includes(row))),
      removed: listUids(removed),
    };
  });
}

/** Locks the rows from which the upgrade was planned. Returns `undefined` if one of the rows has changed. */
async function lockBasis(trx: Trx, basis: UpgradeBasis): Promise<AppRow | undefined> {
  const { blueprint, artifactId, isApproved } = basis.source;
  const app = await trx
    .selectFrom("apps")
    .selectAll()
    .where("id", "=", basis.app.id)
    .where("blueprintId", "=", blueprint.id)
    .forUpdate()
    .executeTakeFirst();
  const source = isApproved
    ? trx
        .selectFrom("artifacts")
        .select("id")
        .where("id", "=", artifactId)
        .where(sql<boolean>`approved->>'version' = ${String(blueprint.version)}`)
    : trx
        .selectFrom("blueprints")
        .select("id")
        .where("id", "=", blueprint.id)
        .where("version", "=", blueprint.version);
  const isSame = (await source.forShare().executeTakeFirst()) !== undefined;
  const channels = await trx
    .selectFrom("channels")
    .select(["number", "version"])
    .where("appId", "=", basis.app.id)
    .orderBy("number")
    .forUpdate()
    .execute();
  const before = basis.channels.map(({ number, version }) => ({ number, version }));
  return app && isSame && isDeepStrictEqual(channels, before) ? app : undefined;
}

const isOutdated = ({ before, content }: PlannedChannel): boolean =>
  before === undefined || changedFields(toComparable(before), toComparable(content)).length > 0;

const toComparable = ({ title, config, events }: Pick<ChannelRow, "title" | "config" | "events">) => ({
  title,
  config,
  events,
});

/** Marks all channels that the blueprint contains as created by the blueprint, including channels that a user added by hand. */
async function markFromBlueprint(trx: Trx, appId: string, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await trx
    .updateTable("channels")
    .set({ fromBlueprint: true })
    .where("appId", "=", appId)
    .where("uid", "in", uids)
    .execute();
}
