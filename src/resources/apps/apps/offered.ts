import { findBlueprint } from "../../../data/apps/blueprints.ts";
import type { Queryable } from "../../../data/database.ts";
import type { BlueprintRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { isId } from "../../../lib/ids.ts";
import { visibleArtifacts } from "../../store/store-scope.ts";

/** Blueprints that are installed by way of stores: of another organization, if an artifact of it offers them. */
interface OfferDeps {
  readonly db: Queryable;
  readonly clock: Clock;
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
    const offered = await offers(deps, caller).select("id").where("id", "=", artifactId).executeTakeFirst();
    if (!offered) throw conflict("A paid order of the artifact is needed.");
  }
  // Only an artifact's own organization has named its blueprint.
  return findBlueprint(deps.db, artifact.organizationId, artifact.blueprintId ?? "");
}

/** The blueprint if the organization may install it today: its own, or one that is offered to it. */
export async function findUpgradeSource(
  deps: OfferDeps,
  caller: Caller,
  blueprintId: string,
): Promise<BlueprintRow | undefined> {
  const own = await findBlueprint(deps.db, caller.organizationId, blueprintId);
  if (own) return own;
  const offered = await offers(deps, caller)
    .select("organizationId")
    .where("blueprintId", "=", blueprintId)
    .limit(1)
    .executeTakeFirst();
  return offered && findBlueprint(deps.db, offered.organizationId, blueprintId);
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
