import type { Trx } from "../../../data/database.ts";
import type { PricingPlanRow } from "../../../data/store-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { refuseInUse, refuseTaken } from "../../kit/refusals.ts";
import { type PricingPlan, renderPricingPlan } from "../store-entities.ts";
import { visibleArtifacts } from "../store-scope.ts";
import { type PricingPlanInput, pricingPlanInput } from "./schema.ts";

/** Artifacts are answered with all of them. */
const MAX_PLANS = 20;
const TAKEN = "The artifact has a pricing plan of that name already.";

/** A plan's place: its id says nothing without the artifact. */
export interface PlanPlace {
  readonly artifactId: string;
  readonly id: string;
}

const artifacts = ownedRows("artifacts", { prefix: "art", entity: "artifact" });
const rows = ownedRows("pricingPlans", { prefix: "plan", entity: "pricingPlan", words: "pricing plan" });

/** @throws ApiError 404 where the caller does not see the artifact, or it has no such plan */
export async function getPlan(
  { db }: RowDeps,
  caller: Caller,
  { artifactId, id }: PlanPlace,
): Promise<PricingPlan> {
  const row = await db
    .selectFrom("pricingPlans")
    .selectAll()
    .where("id", "=", id)
    .where(
      "artifactId",
      "in",
      visibleArtifacts(db, caller).select("artifacts.id").where("id", "=", artifactId),
    )
    .executeTakeFirst();
  if (!row) throw notFound("pricing plan");
  return renderPricingPlan(row);
}

/** @throws ApiError 404 where the caller does not see the artifact */
export async function listPlans(
  { db }: RowDeps,
  caller: Caller,
  artifactId: string,
  page: Page,
): Promise<Listed<PricingPlan>> {
  const artifact = await visibleArtifacts(db, caller)
    .select("id")
    .where("id", "=", artifactId)
    .executeTakeFirst();
  if (!artifact) throw notFound("artifact");
  const all = db.selectFrom("pricingPlans").selectAll().where("artifactId", "=", artifactId);
  return mapPage(await listPage(all, page), renderPricingPlan);
}

/** @throws ApiError 404 where the organization has no such artifact, 409 for a name that it has, or a plan too many */
export async function createPlan(
  { db, clock }: RowDeps,
  caller: Caller,
  artifactId: string,
  input: PricingPlanInput,
): Promise<PricingPlan> {
  const created = db.transaction().execute(async (trx) => {
    await artifacts.lock(trx, caller, artifactId);
    const { count } = await trx
      .selectFrom("pricingPlans")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("artifactId", "=", artifactId)
      .executeTakeFirstOrThrow();
    if (count >= MAX_PLANS) throw conflict(`An artifact has ${MAX_PLANS} pricing plans at most.`);
    return rows.insert(trx, caller, { ...input, artifactId }, clock());
  });
  return renderPricingPlan(await refuseTaken(TAKEN, created));
}

/** @throws ApiError 400, 404, 409 where the artifact has another of that name */
export async function updatePlan(
  { db, clock }: RowDeps,
  caller: Caller,
  place: PlanPlace,
  patch: object,
): Promise<PricingPlan> {
  const updated = db.transaction().execute(async (trx) => {
    const before = await lockPlan(trx, caller, place);
    const { name, price, currency, interval } = before;
    const input = applyPatch(pricingPlanInput, { name, price, currency, interval }, patch);
    return rows.update(trx, caller, before, input, clock());
  });
  return renderPricingPlan(await refuseTaken(TAKEN, updated));
}

/** @throws ApiError 404, and 409 where there are orders of it */
export async function deletePlan({ db, clock }: RowDeps, caller: Caller, place: PlanPlace): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await lockPlan(trx, caller, place), clock());
  });
  await refuseInUse("There are orders of the pricing plan.", deleted);
}

/** @throws ApiError 404 for a plan of another artifact */
async function lockPlan(trx: Trx, caller: Caller, { artifactId, id }: PlanPlace): Promise<PricingPlanRow> {
  const row = await rows.lock(trx, caller, id);
  if (row.artifactId !== artifactId) throw notFound("pricing plan");
  return row;
}
