import { recordAudit } from "../../data/accounts/audit.ts";
import { operatorOf } from "../../data/accounts/audit-entry.ts";
import { insertApp } from "../../data/apps/apps.ts";
import { recordChange } from "../../data/changes.ts";
import type { NewChannel } from "../../data/channels/channels.ts";
import type { Trx } from "../../data/database.ts";
import type { AppRow } from "../../data/tables.ts";
import { changedFields } from "../../lib/json/changed-fields.ts";
import { type ChannelDeps, checkWanted } from "./channels.ts";
import type { WantedApp } from "./check.ts";
import { type Organization, SetUpConflict, type Step } from "./plan.ts";

export interface Place {
  readonly organization: Organization;
  /** Name by which the plan refers to the app, such as `github in acme/default`. */
  readonly called: string;
}

/** Finds the app by uid in its space and updates it. If there is none, creates the app with all its channels. */
export async function reconcileApp(
  deps: ChannelDeps,
  trx: Trx,
  { organization, called }: Place,
  wanted: WantedApp,
): Promise<{ readonly id: string; readonly steps: readonly Step[]; readonly isNew: boolean }> {
  const organizationId = organization.id;
  const object = `app ${called}`;
  const spaceId = await idOf(trx, "spaces", "name", organizationId, wanted.space);
  const blueprintId =
    wanted.blueprint === undefined
      ? null
      : await idOf(trx, "blueprints", "uid", organizationId, wanted.blueprint);
  const [found, ...others] = await trx
    .selectFrom("apps")
    .selectAll()
    .where("organizationId", "=", organizationId)
    .where("spaceId", "=", spaceId)
    .where("uid", "=", wanted.uid)
    .limit(2)
    .forUpdate()
    .execute();
  if (others.length > 0)
    throw new SetUpConflict("the space has several apps with this uid; delete all but one");
  if (found) {
    const step = await updateFound(trx, deps, found, object, {
      title: wanted.title ?? found.title,
      description: wanted.description === undefined ? found.description : wanted.description,
      blueprintId,
    });
    return { id: found.id, steps: [step], isNew: false };
  }

  const { title = wanted.template.title, description = wanted.template.description, uid } = wanted;
  const app = { uid, title, description, blueprintId, organizationId, spaceId };
  const channels: NewChannel[] = [];
  for (const channel of wanted.channels) channels.push(await checkWanted(deps, channel));
  const made = await insertApp(trx, operatorOf(organizationId), app, channels, deps);
  const steps = channels.map(
    (channel): Step => ({ action: "create", object: `channel ${channel.uid} of ${called}` }),
  );
  return { id: made.app.id, steps: [{ action: "create", object }, ...steps], isNew: true };
}

async function updateFound(
  trx: Trx,
  { nowMs }: ChannelDeps,
  before: AppRow,
  object: string,
  content: Pick<AppRow, "title" | "description" | "blueprintId">,
): Promise<Step> {
  const { title, description, blueprintId } = before;
  const fields = changedFields({ title, description, blueprintId }, content);
  if (fields.length === 0) return { action: "unchanged", object };
  await recordChange(trx, { kind: "app", key: before.id });
  await trx
    .updateTable("apps")
    .set({ ...content, updatedAt: new Date(nowMs) })
    .where("id", "=", before.id)
    .execute();
  const entry = { action: "update", entity: "app", id: before.id, fields } as const;
  await recordAudit(trx, operatorOf(before.organizationId), entry, nowMs);
  return { action: "update", object, fields };
}

/**
 * Returns the id of a space or blueprint that an earlier step has created.
 *
 * @throws SetUpConflict if there is none
 */
async function idOf(
  trx: Trx,
  table: "spaces" | "blueprints",
  column: "name" | "uid",
  organizationId: string,
  value: string,
): Promise<string> {
  const row = await trx
    .selectFrom(table)
    .select("id")
    .where("organizationId", "=", organizationId)
    .where(trx.dynamic.ref<"id">(column), "=", value)
    .forKeyShare()
    .executeTakeFirst();
  if (!row) throw new SetUpConflict(`there is no ${table === "spaces" ? "space" : "blueprint"} ${value}`);
  return row.id;
}
