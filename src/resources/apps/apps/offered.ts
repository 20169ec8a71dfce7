import { sql } from "kysely";
import { findBlueprint } from "../../../data/apps/blueprints.ts";
import type { Queryable } from "../../../data/database.ts";
import type { AppRow, BlueprintRow, Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { isId } from "../../../lib/ids.ts";
import { needsApproval } from "../../store/approved-blueprints.ts";
import { visibleArtifacts } from "../../store/store-scope.ts";

/** Blueprints that are installed by way of stores: of another organization, if an artifact of it offers them. */
interface OfferDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

/** A blueprint as it is installed. */
export interface InstallSource {
  readonly blueprint: BlueprintRow;
  /** The artifact by which it came. */
  readonly artifactId: string | null;
  /** It is the version that the artifact's store has approved, not the present one. */
  readonly isApproved: boolean;
}

/**
 * The blueprint that an artifact installs.
 *
 * @throws ApiError 404 where the caller sees no such artifact, or its blueprint is gone; 400 for an artifact that is none; 409
 * where another organization's is not published, or is to be paid for and is not
 */
export async function blueprintOfArtifact(
  deps: OfferDeps,
  caller: Caller,
  artifactId = "",
): Promise<InstallSource> {
  const artifact = isId("art", artifactId)
    ? await visibleArtifacts(deps.db, caller).selectAll().where("id", "=", artifactId).executeTakeFirst()
    : undefined;
  if (!artifact) throw notFound("artifact");
  if (artifact.kind !== "blueprint") {
    throw invalidParameters([{ path: "artifactId", message: `is of kind ${artifact.kind}, not blueprint` }]);
  }
  if (artifact.organizationId !== caller.organizationId) {
    if (artifact.status !== "published") throw conflict("The artifact is not published.");
    const offered = await offers(deps, caller).select("id").where("id", "=", artifactId).executeTakeFirst();
    if (!offered) throw conflict("A paid order of the artifact is needed.");
  }
  return sourceOf(deps, caller, artifact);
}

/**
 * The blueprint if the organization may install it today: its own, or one that is offered to it by the artifact that the app was
 * installed from. Where that is not known, one with an approved version comes first.
 *
 * @throws ApiError 404, 409
 */
export async function findUpgradeSource(
  deps: OfferDeps,
  caller: Caller,
  { blueprintId, artifactId }: Pick<AppRow, "blueprintId" | "artifactId">,
): Promise<InstallSource | undefined> {
  if (blueprintId === null) return undefined;
  const own = await findBlueprint(deps.db, caller.organizationId, blueprintId);
  if (own) return { blueprint: own, artifactId, isApproved: false };
  const offered = await offers(deps, caller)
    .selectAll()
    .where("blueprintId", "=", blueprintId)
    .$if(artifactId !== null, (all) => all.where("id", "=", artifactId ?? ""))
    .orderBy(sql`approved IS NULL`)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return offered && sourceOf(deps, caller, offered);
}

/** Only an artifact's own organization has named its blueprint. @throws ApiError 404, 409 */
async function sourceOf(
  { db }: OfferDeps,
  caller: Caller,
  artifact: Row<"artifacts">,
): Promise<InstallSource> {
  const { id: artifactId, organizationId, approved } = artifact;
  const blueprint = await findBlueprint(db, organizationId, artifact.blueprintId ?? "");
  if (!blueprint) throw notFound("blueprint");
  if (organizationId === caller.organizationId || !(await needsApproval(db, artifact)))
    return { blueprint, artifactId, isApproved: false };
  if (approved === null) throw conflict("The artifact's store has approved no version of its blueprint.");
  return { blueprint: { ...blueprint, ...approved }, artifactId, isApproved: true };
}

/** Published artifacts that are to be had for nothing, since they have no plans or a free one, or were paid for. */
const offers = ({ db, clock }: OfferDeps, caller: Caller) =>
  visibleArtifacts(db, caller)
    .where("artifacts.status", "=", "published")
    .where((eb) => {
      const plans = eb
        .selectFrom("pricingPlans")
        .select("pricingPlans.id")
        .whereRef("pricingPlans.artifactId", "=", "artifacts.id");
      const paid = eb
        .selectFrom("storeOrders")
        .select("storeOrders.id")
        .whereRef("storeOrders.artifactId", "=", "artifacts.id")
        .where("storeOrders.organizationId", "=", caller.organizationId)
        .where("storeOrders.status", "=", "paid")
        .where((order) =>
          order.or([
            order("storeOrders.expiresAt", "is", null),
            order("storeOrders.expiresAt", ">", new Date(clock())),
          ]),
        );
      const free = plans.where("pricingPlans.price", "=", "0");
      return eb.or([eb.not(eb.exists(plans)), eb.exists(free), eb.exists(paid)]);
    });
