import { sql } from "kysely";
import { findReconcileErrors, type ValidChannel } from "../../channels/check-reconcile.ts";
import { invalidParameters } from "../../http/errors.ts";
import type { Deps } from "../kit/deps.ts";
import type { AppScope } from "./app-scope.ts";

/**
 * Checks a channel together with the channel that it reconciles and the channels that reconcile it.
 *
 * @throws ApiError 400 that lists each invalid field
 */
export async function requireReconcilable(
  deps: Deps,
  { appId, organizationId }: AppScope,
  channel: ValidChannel,
): Promise<void> {
  const reconciles = typeof channel.config.reconciles === "string" ? channel.config.reconciles : "";
  const others = await deps.db
    .selectFrom("channels")
    .select(["uid", "kind", "config", "events"])
    .where("appId", "=", appId)
    .where("organizationId", "=", organizationId)
    .where("uid", "!=", channel.uid)
    .where(sql<boolean>`(uid = ${reconciles} OR config->>'reconciles' = ${channel.uid})`)
    .execute();
  const findings = findReconcileErrors(deps, channel, others);
  if (findings.length > 0) throw invalidParameters(findings);
}
