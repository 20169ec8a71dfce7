import { findWrongWakes } from "../../../channels/check-wakes.ts";
import { readWakes } from "../../../event/wakes.ts";
import { invalidParameters } from "../../../http/errors.ts";
import type { Deps } from "../../kit/deps.ts";
import { type AppScope, requireApp } from "../app-scope.ts";

/**
 * Checks that the channel only wakes polling channels of its app.
 *
 * @param stored config of the channel before the change
 * @throws ApiError 404 if the organization has no such app; 400 that lists each wrong uid
 */
export async function requireWakes(
  { db, channelKinds }: Deps,
  scope: AppScope,
  config: object,
  stored?: object,
): Promise<void> {
  if (readWakes(config) === undefined) return;
  await requireApp(db, scope);
  const channels = await db
    .selectFrom("channels")
    .select(["uid", "kind"])
    .where("appId", "=", scope.appId)
    .execute();
  const findings = findWrongWakes(channelKinds, config, channels, stored);
  if (findings.length > 0) throw invalidParameters(findings);
}
