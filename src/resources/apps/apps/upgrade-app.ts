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
import type { RowDeps } from "../../kit/resource-spec.ts";
import { COUNTED_CHANNELS } from "../app-scope.ts";
import type { PlannedChannel } from "./blueprint-channels.ts";
import type { InstallSource } from "./offered.ts";
import { appChannels } from "./queries.ts";

/** The rows that an upgrade was planned on: it is carried out only while they are unchanged. */
export interface UpgradeBasis {
  readonly app: AppRow;
  readonly source: InstallSource;
  readonly channels: readonly ChannelRow[];
}

export interface UpgradeOptions extends WriteContext, Pick<RowDeps, "requireRoom"> {
  readonly author: Author;
  /** Remove what the blueprint has made and no longer has. */
  readonly removeMissing: boolean;
  readonly purge: boolean;
}

/** The app with all channels that it has now, and the uids of those that are in each case. */
export interface Upgraded {
  readonly app: AppRow;
  readonly channels: readonly ChannelRow[];
  readonly added: readonly string[];
  readonly updated: readonly string[];
  /** Not in the blueprint, and left alone. */
  readonly kept: readonly string[];
  readonly removed: readonly string[];
}

/** Brings the app's channels to the plan, all or nothing; undefined where what it was made on has changed. */
export async function upgradeApp(
  db: Queryable,
  basis: UpgradeBasis,
  plan: readonly PlannedChannel[],
  options: UpgradeOptions,
): Promise<Upgraded | undefined> {
  return db.transaction().execute(async (trx) => {
    const app = await lockBasis(trx, basis);
    if (!app) return undefined;
    const planned = new Set(plan.map(({ content }) => content.uid));
    const missing = basis.channels.filter(({ uid }) => !planned.has(uid));
    const removed = options.removeMissing ? missing.filter(({ fromBlueprint }) => fromBlueprint) : [];
    const outdated = plan.filter(isOutdated);
    const added = outdated.filter(({ before }) => !before);
    // What goes makes room for what comes.
    const more = Math.max(0, added.length - removed.length);
    await options.requireRoom(trx, options.author, COUNTED_CHANNELS, more);
    // First what goes: what comes may publish to its topics.
    for (const row of removed) {
      await deleteChannel(trx, row, options);
      await recordChannelAudit(trx, options.author, "delete", row, options.nowMs);
    }
    for (const { before, content } of outdated) {
      if (before) {
        await updateChannel(trx, before, content, options);
        const fields = changedFields(shownOf(before), shownOf(content));
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
    const uidsOf = (rows: readonly { readonly uid: string }[]) => rows.map(({ uid }) => uid);
    return {
      app: upgraded,
      channels: await appChannels(trx, app.id).execute(),
      added: uidsOf(added.map(({ content }) => content)),
      updated: uidsOf(outdated.filter(({ before }) => before).map(({ content }) => content)),
      kept: uidsOf(missing.filter((row) => !removed.includes(row))),
      removed: uidsOf(removed),
    };
  });
}

/** Holds everything that the plan was made on, if it still is as it was. */
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
  before === undefined || changedFields(shownOf(before), shownOf(content)).length > 0;

const shownOf = ({ title, config, events }: Pick<ChannelRow, "title" | "config" | "events">) => ({
  title,
  config,
  events,
});

/** A channel that was added by hand is the blueprint's from when that has one of its uid. */
async function markFromBlueprint(trx: Trx, appId: string, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await trx
    .updateTable("channels")
    .set({ fromBlueprint: true })
    .where("appId", "=", appId)
    .where("uid", "in", uids)
    .execute();
}
