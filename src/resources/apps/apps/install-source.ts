import { sql } from "kysely";
import { findBlueprint } from "../../../data/apps/blueprints.ts";
import type { AppRow, BlueprintRow, Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../../http/errors.ts";
import { isId } from "../../../lib/ids.ts";
import type { Deps } from "../../kit/deps.ts";
import { needsApproval } from "../../store/approved-blueprints.ts";
import { visibleArtifacts } from "../../store/store-scope.ts";

export interface InstallSource {
  readonly blueprint: BlueprintRow;
  /** Id of the store artifact that offers the blueprint, or `null` if the app was installed directly from the blueprint. */
  readonly artifactId: string | null;
  /** Whether `blueprint` is the copy that the store approved. If false, `blueprint` is the current version. */
  readonly isApproved: boolean;
}

/**
 * Returns the blueprint that an artifact installs.
 *
 * @throws ApiError 404 if the artifact is not visible to the caller, or its blueprint was deleted
 * @throws ApiError 400 if its kind is not `blueprint`
 * @throws ApiError 409 if an artifact of another organization is not published, not approved, or not paid for
 */
export async function getInstallSource(deps: Deps, caller: Caller, artifactId = ""): Promise<InstallSource> {
  const artifact = isId("art", artifactId)
    ? await visibleArtifacts(deps.db, caller).selectAll().where("id", "=", artifactId).executeTakeFirst()
    : undefined;
  if (!artifact) throw notFound("artifact");
  if (artifact.kind !== "blueprint") {
    const message = `must be an artifact of kind blueprint, not ${artifact.kind}`;
    throw invalidParameters([{ path: "artifactId", message }]);
  }
  if (artifact.organizationId !== caller.organizationId) {
    if (artifact.status !== "published") throw conflict("The artifact is not published.");
    const offered = await installableArtifacts(deps, caller)
      .select("id")
      .where("id", "=", artifactId)
      .executeTakeFirst();
    if (!offered) throw conflict("The artifact is not free. Your organization needs a paid order for it.");
  }
  return toInstallSource(deps, caller, artifact);
}

/**
 * Finds the blueprint that an app can be upgraded to. Returns `undefined` if there is none. The organization's own blueprint takes
 * precedence over one that an artifact offers. If the app does not record its artifact, artifacts with an approved version come first.
 *
 * @throws ApiError 404 if the blueprint was deleted; 409 if the store has not approved any version
 */
export async function findUpgradeSource(
  deps: Deps,
  caller: Caller,
  { blueprintId, artifactId }: Pick<AppRow, "blueprintId" | "artifactId">,
): Promise<InstallSource | undefined> {
  if (blueprintId === null) return undefined;
  const own = await findBlueprint(deps.db, caller.organizationId, blueprintId);
  if (own) return { blueprint: own, artifactId, isApproved: false };
  const offered = await installableArtifacts(deps, caller)
    .selectAll()
    .where("blueprintId", "=", blueprintId)
    .$if(artifactId !== null, (all) => all.where("id", "=", artifactId ?? ""))
    .orderBy(sql`approved IS NULL`)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return offered && toInstallSource(deps, caller, offered);
}

/**
 * Loads the blueprint that an artifact offers, from the organization that owns the artifact.
 * @throws ApiError 404 if the blueprint was deleted; 409 if the store has not approved any version
 */
async function toInstallSource(
  { db }: Deps,
  caller: Caller,
  artifact: Row<"artifacts">,
): Promise<InstallSource> {
  const { id: artifactId, organizationId, approved } = artifact;
  const blueprint = await findBlueprint(db, organizationId, artifact.blueprintId ?? "");
  if (!blueprint) throw notFound("blueprint");
  if (organizationId === caller.organizationId || !(await needsApproval(db, artifact)))
    return { blueprint, artifactId, isApproved: false };
  if (approved === null)
    throw conflict("The artifact's store has not approved any version of the blueprint yet.");
  return { blueprint: { ...blueprint, ...approved }, artifactId, isApproved: true };
}

/**
 * Selects published artifacts that are free or paid for by the caller's organization. Free means no pricing plan, or a plan with price 0.
 */
const installableArtifacts = ({ db, clock }: Deps, caller: Caller) =>
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
