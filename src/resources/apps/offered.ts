import type { Queryable } from "../../data/database.ts";
import type { ArtifactRow } from "../../data/store-tables.ts";
import type { BlueprintRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { isId } from "../../lib/ids.ts";
import { visibleArtifacts } from "../store-scope.ts";

/** Blueprints that are installed by way of stores: of another organization, if an artifact of it offers them. */
interface OfferDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

/**
 * What an artifact is to install.
 *
 * @throws ApiError 404 where the caller sees no such artifact, or its blueprint is gone; 400 for an artifact that is none; 409
 * where another organization's is not published, or is to be paid for and is not
 */
export async function blueprintOfArtifact(
  deps: OfferDeps,
  caller: Caller,
  artifactId = "",
): Promise<BlueprintRow | undefined> {
  const artifact = isId("art", artifactId)
    ? await visibleArtifacts(deps.db, caller).selectAll().where("id", "=", artifactId).executeTakeFirst()
    : undefined;
  if (!artifact) throw notFound("artifact");
  if (artifact.kind !== "blueprint") {
    throw invalidParameters([{ path: "artifactId", message: `is of kind ${artifact.kind}, not blueprint` }]);
  }
  if (artifact.organizationId !== caller.organizationId) {
    if (artifact.status !== "published") throw conflict("The artifact is not published.");
    if (!(await isFree(deps.db, artifact)) && !(await hasPaid(deps, caller, artifact)))
      throw conflict("A paid order of the artifact is needed.");
  }
  return blueprintOf(deps.db, artifact);
}

/** The blueprint if the organization may install it today: its own, or one that is offered to it. */
export async function findUpgradeSource(
  deps: OfferDeps,
  caller: Caller,
  blueprintId: string,
): Promise<BlueprintRow | undefined> {
  const { db } = deps;
  const own = await db
    .selectFrom("blueprints")
    .selectAll()
    .where("id", "=", blueprintId)
    .where("organizationId", "=", caller.organizationId)
    .executeTakeFirst();
  if (own) return own;
  const offers = await visibleArtifacts(db, caller)
    .selectAll()
    .where("blueprintId", "=", blueprintId)
    .where("status", "=", "published")
    .execute();
  for (const artifact of offers) {
    if ((await isFree(db, artifact)) || (await hasPaid(deps, caller, artifact)))
      return blueprintOf(db, artifact);
  }
  return undefined;
}

/** Only an artifact's own organization has named its blueprint. */
const blueprintOf = (
  db: Queryable,
  { blueprintId, organizationId }: ArtifactRow,
): Promise<BlueprintRow | undefined> =>
  db
    .selectFrom("blueprints")
    .selectAll()
    .where("id", "=", blueprintId ?? "")
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();

/** It has no plans, or one that costs nothing. */
async function isFree(db: Queryable, { id }: ArtifactRow): Promise<boolean> {
  const cheapest = await db
    .selectFrom("pricingPlans")
    .select("price")
    .where("artifactId", "=", id)
    .orderBy("price")
    .limit(1)
    .executeTakeFirst();
  return cheapest === undefined || Number(cheapest.price) === 0;
}

async function hasPaid(
  { db, clock }: OfferDeps,
  { organizationId }: Caller,
  { id }: ArtifactRow,
): Promise<boolean> {
  const order = await db
    .selectFrom("storeOrders")
    .select("id")
    .where("artifactId", "=", id)
    .where("organizationId", "=", organizationId)
    .where("status", "=", "paid")
    .where((eb) => eb.or([eb("expiresAt", "is", null), eb("expiresAt", ">", new Date(clock()))]))
    .limit(1)
    .executeTakeFirst();
  return order !== undefined;
}
