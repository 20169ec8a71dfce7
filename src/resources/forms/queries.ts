import { recordAudit } from "../../data/accounts/audit.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { FormRow } from "../../data/form-tables.ts";
import type { Caller } from "../../http/context.ts";
import type { Listed } from "../../http/page.ts";
import { conflict, invalidParameters } from "../../http/problem.ts";
import type { Versioned } from "../../http/version.ts";
import { changedFields } from "../../lib/changed-fields.ts";
import type { Clock } from "../../lib/clock.ts";
import { createId } from "../../lib/ids.ts";
import { listPage } from "../kit/list-page.ts";
import { applyPatch } from "../kit/merge.ts";
import { ownedRows } from "../kit/owned-rows.ts";
import { BLUEPRINTS, requireRow } from "../kit/references.ts";
import { refuseInUse, refuseTaken } from "../kit/refusals.ts";
import type { FormContent } from "./content.ts";
import { type FormInput, type FormsQuery, formContentInput } from "./schema.ts";

export interface FormDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

/** Refuses a write that was meant for another version of the form. */
type RequireMatch = (form: Versioned) => void;

const TAKEN = "There is a form of that uid already.";

const rows = ownedRows("forms", { prefix: "form", entity: "form" });

export const getForm = ({ db }: FormDeps, caller: Caller, id: string): Promise<FormRow> =>
  rows.get(db, caller, id);

export function listForms(
  { db }: FormDeps,
  { organizationId }: Caller,
  { versionParentId, ...page }: FormsQuery,
): Promise<Listed<FormRow>> {
  const all = db.selectFrom("forms").selectAll().where("organizationId", "=", organizationId);
  return listPage(
    versionParentId === undefined ? all : all.where("versionParentId", "=", versionParentId),
    page,
  );
}

/**
 * Makes a form, or a new version of one, which goes by the same uid.
 *
 * @throws ApiError 400 for a version under another uid, 404 where blueprint or form are not there, 409 where another form has
 * the uid
 */
export async function createForm(
  { db, clock }: FormDeps,
  caller: Caller,
  input: FormInput,
): Promise<FormRow> {
  const created = db.transaction().execute(async (trx) => {
    const { organizationId, accountId } = caller;
    const { title, description, blueprintId, versionParentId, content } = input;
    await requireRow(trx, caller, BLUEPRINTS, blueprintId);
    const parent = versionParentId === null ? undefined : await rows.lock(trx, caller, versionParentId);
    if (parent && input.uid !== undefined && input.uid !== parent.uid) {
      const message = "must be that of the form it is a version of, or be left out";
      throw invalidParameters([{ path: "uid", message }]);
    }
    const nowMs = clock();
    const id = createId("form", nowMs);
    const insert = trx.insertInto("forms").values({
      ...{ id, organizationId, title, description, blueprintId, versionParentId },
      uid: parent?.uid ?? input.uid ?? id,
      ...{ createdById: accountId, updatedById: accountId, content: JSON.stringify(content) },
      ...{ createdAt: new Date(nowMs), updatedAt: new Date(nowMs) },
    });
    const row = await insert.returningAll().executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action: "create", entity: "form", id }, nowMs);
    return row;
  });
  return refuseTaken(TAKEN, created);
}

/** @throws ApiError 400, 404, whatever `requireMatch` throws, and 409 where the uid is another form's or must stay */
export async function updateForm(
  { db, clock }: FormDeps,
  caller: Caller,
  id: string,
  patch: object,
  requireMatch: RequireMatch,
): Promise<FormRow> {
  const updated = db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const input = applyPatch(formContentInput, contentOf(before), patch);
    const { title, description, blueprintId, content, uid = before.uid } = input;
    // One that stays is not looked up: it may be about to be deleted, which waits for this form.
    if (blueprintId !== before.blueprintId) await requireRow(trx, caller, BLUEPRINTS, blueprintId);
    requireMatch(versionOf(before));
    if (uid !== before.uid && (await isVersioned(trx, before)))
      throw conflict("A form that has versions, or is one, keeps its uid.");
    const nowMs = clock();
    const row = await trx
      .updateTable("forms")
      .set({
        ...{ uid, title, description, blueprintId, content: JSON.stringify(content) },
        updatedById: caller.accountId,
        version: before.version + 1,
        updatedAt: new Date(nowMs),
      })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    const fields = changedFields(contentOf(before), contentOf(row));
    await recordAudit(trx, caller, { action: "update", entity: "form", id, fields }, nowMs);
    return row;
  });
  return refuseTaken(TAKEN, updated);
}

/** @throws ApiError 404, whatever `requireMatch` throws, and 409 while it has versions */
export async function deleteForm(
  { db, clock }: FormDeps,
  caller: Caller,
  id: string,
  requireMatch: RequireMatch,
): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    const row = await rows.lock(trx, caller, id);
    requireMatch(versionOf(row));
    await rows.remove(trx, caller, row, clock());
  });
  await refuseInUse("The form has versions.", deleted);
}

/** A blueprint that is deleted leaves its forms without a write of theirs: it is part of what they are told apart by. */
export const versionOf = ({ id, version, blueprintId }: FormRow): Versioned => ({
  id: blueprintId === null ? id : `${id}.${blueprintId}`,
  version,
});

/** What may be changed of it. */
const contentOf = ({ uid, title, description, blueprintId, content }: FormRow) => ({
  ...{ uid, title, description, blueprintId },
  // It was checked when it was written.
  content: content as FormContent,
});

/** Whoever makes a version holds the row of its form. */
async function isVersioned(trx: Trx, { id, versionParentId }: FormRow): Promise<boolean> {
  if (versionParentId !== null) return true;
  const version = await trx
    .selectFrom("forms")
    .select("id")
    .where("versionParentId", "=", id)
    .limit(1)
    .executeTakeFirst();
  return version !== undefined;
}
