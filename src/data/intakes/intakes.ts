import { sql } from "kysely";
import { INTAKE_KIND, INTAKE_UID, type IntakeSettings, type StoredRouting } from "../../event/intake.ts";
import { inPages } from "../../lib/pages.ts";
import { pauseChannel, resumeChannel } from "../channels/channel-states.ts";
import {
  type ChannelContent,
  deleteChannel,
  insertChannel,
  updateChannel,
  type WriteContext,
} from "../channels/channels.ts";
import type { Queryable, Trx } from "../database.ts";
import type { BlueprintRow, ChannelRow } from "../tables.ts";

export type IntakeContent = Omit<ChannelContent, "title" | "events" | "connectionId">;

/** An intake with the names of its blueprint. */
export interface TitledIntake extends Pick<ChannelRow, "number" | "organizationId"> {
  readonly blueprintId: string;
  readonly uid: string;
  readonly title: string;
}

const PAGE = 1_000;

/** Yields the intakes of all organizations. */
export function pageIntakes(db: Queryable): AsyncGenerator<readonly TitledIntake[]> {
  const all = db
    .selectFrom("channels as c")
    .innerJoin("blueprints as b", "b.id", "c.appId")
    .select(["c.number", "c.organizationId", "b.id as blueprintId", "b.uid", "b.title"])
    .where("c.kind", "=", INTAKE_KIND)
    .orderBy("c.number");
  return inPages("number", 0, PAGE, (after, limit) =>
    all.where("c.number", ">", after).limit(limit).execute(),
  );
}

type Owner = Pick<BlueprintRow, "id" | "organizationId">;

/** Finds the intake of a blueprint. The caller has checked that the caller of the API may access the blueprint. */
export const findIntake = (db: Queryable, blueprintId: string): Promise<ChannelRow | undefined> =>
  db
    .selectFrom("channels")
    .selectAll()
    .where("appId", "=", blueprintId)
    .where("kind", "=", INTAKE_KIND)
    .executeTakeFirst();

/** @param isApproved false to buffer all deliveries until `applySettings` is called */
export async function insertIntake(
  trx: Trx,
  owner: Owner,
  { routing, content, isApproved }: IntakeWrite & { readonly isApproved: boolean },
  context: WriteContext,
): Promise<ChannelRow> {
  const stored: StoredRouting = isApproved ? routing : { ...routing, awaitsFirstApproval: true };
  const channel = { ...withoutEvents(content), uid: INTAKE_UID, kind: INTAKE_KIND, routing: stored };
  const row = await insertChannel(trx, owner, channel, context);
  return isApproved ? row : pauseChannel(trx, row, { buffersWhilePaused: true, nowMs: context.nowMs });
}

export interface IntakeWrite {
  readonly routing: StoredRouting;
  readonly content: IntakeContent;
}

/**
 * Makes settings effective. Ends the pause of an intake that waited for its first approval.
 *
 * @param before row of the intake, locked by the transaction
 */
export async function applySettings(
  trx: Trx,
  before: ChannelRow,
  { routing, content }: IntakeWrite,
  context: WriteContext,
): Promise<ChannelRow> {
  const waited = before.routing?.awaitsFirstApproval === true;
  const current = waited
    ? await resumeChannel(trx, before, { state: content.state, nowMs: context.nowMs })
    : before;
  const row = await updateChannel(trx, current, withoutEvents(content), context);
  if (row === undefined) throw new Error("an intake changed although its row is locked");
  return trx
    .updateTable("channels")
    .set({ routing: JSON.stringify(routing) })
    .where("number", "=", row.number)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Deletes an intake with its route keys, and schedules the removal of the items that it holds. */
export async function removeIntake(trx: Trx, intake: ChannelRow, nowMs: number): Promise<void> {
  await deleteChannel(trx, intake, { purge: true, nowMs });
  await trx.deleteFrom("routeKeys").where("blueprintId", "=", intake.appId).execute();
}

const withoutEvents = (content: IntakeContent): ChannelContent => ({ ...content, title: null, events: [] });

/**
 * Returns the settings of the blueprint's intake that each store has approved, for stores of other organizations that require approval. A
 * store that approved a version without an intake yields `null`.
 *
 * @param except id of an artifact to leave out
 */
export async function listApprovedIntakes(
  db: Queryable,
  blueprintId: string,
  { except = "" }: { readonly except?: string } = {},
): Promise<readonly (IntakeSettings | null)[]> {
  const rows = await db
    .selectFrom("artifacts")
    .innerJoin("stores", "stores.id", "artifacts.offeredIn")
    .select(sql<IntakeSettings | null>`artifacts.approved->'intake'`.as("intake"))
    .where("artifacts.blueprintId", "=", blueprintId)
    .where("artifacts.id", "<>", except)
    .where("artifacts.status", "=", "published")
    .where("artifacts.approved", "is not", null)
    .where("stores.requireApproval", "=", true)
    .whereRef("stores.organizationId", "<>", "artifacts.organizationId")
    .execute();
  return rows.map(({ intake }) => intake);
}
