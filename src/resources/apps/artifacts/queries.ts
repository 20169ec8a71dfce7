import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Queryable } from "../../../data/database.ts";
import type { ArtifactRow } from "../../../data/store-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed } from "../../../http/page.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { listPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { BLUEPRINTS, requireRow } from "../../kit/references.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import { plansOf } from "../../store/store-entities.ts";
import { visibleArtifacts } from "../../store/store-scope.ts";
import { offer, offerAgain } from "./offers.ts";
import {
  type Artifact,
  type ArtifactInput,
  type ArtifactsQuery,
  artifactInputSchema,
  contentOf,
  renderArtifact,
} from "./schema.ts";

const rows = ownedRows("artifacts", { prefix: "art", entity: "artifact" });

/** @throws ApiError 404 where the caller does not see it */
export async function getArtifact({ db }: RowDeps, caller: Caller, id: string): Promise<Artifact> {
  const row = await visibleArtifacts(db, caller).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("artifact");
  return complete(db, row);
}

export async function listArtifacts(
  { db }: RowDeps,
  caller: Caller,
  { storeId, categoryId, status, ...page }: ArtifactsQuery,
): Promise<Listed<Artifact>> {
  let all =
    storeId === undefined && categoryId === undefined
      ? db.selectFrom("artifacts").where("organizationId", "=", caller.organizationId)
      : visibleArtifacts(db, caller);
  if (storeId !== undefined) all = all.where("offeredIn", "=", storeId);
  if (categoryId !== undefined) all = all.where("categoryId", "=", categoryId);
  if (status !== undefined) all = all.where("status", "=", status);
  const { items, total } = await listPage(all.selectAll(), page);
  return { items: await completeAll(db, items), total };
}

/** @throws ApiError 404 where blueprint, store or category are not there, 409 where the store takes none of others */
export async function createArtifact(
  { db, clock }: RowDeps,
  caller: Caller,
  input: ArtifactInput,
): Promise<Artifact> {
  return db.transaction().execute(async (trx) => {
    await requireRow(trx, caller, BLUEPRINTS, input.blueprintId);
    const status = await offer(trx, caller, input);
    return complete(trx, await rows.insert(trx, caller, { ...columnsOf(input), status }, clock()));
  });
}

/** @throws ApiError 400; 404 where it, or what it names anew, is not there; 409: see `offerAgain` */
export async function updateArtifact(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Artifact> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const input = applyPatch(artifactInputSchema, contentOf(before), patch);
    if (input.blueprintId !== before.blueprintId)
      await requireRow(trx, caller, BLUEPRINTS, input.blueprintId);
    const status = await offerAgain(trx, caller, before, input);
    return complete(trx, await rows.update(trx, caller, before, { ...columnsOf(input), status }, clock()));
  });
}

/** Its plans and reviews go with it. @throws ApiError 404, and 409 where it has orders */
export async function deleteArtifact({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("There are orders of the artifact.", deleted);
}

/** What the organization of a store decides about an artifact in it. */
export interface Decision {
  readonly action: "approve" | "reject";
  readonly status: "published" | "rejected";
  /** What it may be decided about. */
  readonly from: readonly ArtifactRow["status"][];
}

/** @throws ApiError 404; 403 for the artifact's organization where the store is another's; 409 where it is in no such status */
export async function decide(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  { action, status, from }: Decision,
): Promise<Artifact> {
  return db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom("artifacts")
      .selectAll()
      .where("id", "=", id)
      .where((eb) =>
        eb.or([
          eb("organizationId", "=", caller.organizationId),
          eb("offeredIn", "in", ownStores(trx, caller)),
        ]),
      )
      .forUpdate()
      .executeTakeFirst();
    if (!before) throw notFound("artifact");
    if (before.offeredIn === null) throw conflict("The artifact is in no store.");
    const store = await ownStores(trx, caller).where("id", "=", before.offeredIn).executeTakeFirst();
    if (!store)
      throw new ApiError(
        "permission_denied",
        "Only the organization of its store decides about an artifact.",
      );
    if (!from.includes(before.status)) throw conflict(`The artifact is ${before.status}.`);
    const nowMs = clock();
    const row = await trx
      .updateTable("artifacts")
      .set({ status, updatedAt: new Date(nowMs) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action, entity: "artifact", id, fields: ["status"] }, nowMs);
    return complete(trx, row);
  });
}

const ownStores = (db: Queryable, { organizationId }: Caller) =>
  db.selectFrom("stores").select("id").where("organizationId", "=", organizationId);

const columnsOf = ({ storeId, ...content }: ArtifactInput) => ({ ...content, offeredIn: storeId });

async function complete(db: Queryable, row: ArtifactRow): Promise<Artifact> {
  return renderArtifact(row, (await plansOf(db, [row.id])).get(row.id) ?? []);
}

async function completeAll(db: Queryable, found: readonly ArtifactRow[]): Promise<readonly Artifact[]> {
  const ids = found.map(({ id }) => id);
  const plans = await plansOf(db, ids);
  return found.map((row) => renderArtifact(row, plans.get(row.id) ?? []));
}
