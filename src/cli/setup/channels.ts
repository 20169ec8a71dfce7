import { sql } from "kysely";
import { findChannelChanges } from "../../channels/channel-changes.ts";
import { type CheckChannelDeps, checkChannel } from "../../channels/check-channel.ts";
import { findTargetErrors } from "../../channels/check-reconcile.ts";
import { recordAudit } from "../../data/accounts/audit.ts";
import { channelName, operatorOf } from "../../data/accounts/audit-entry.ts";
import { openSecrets } from "../../data/channels/channel-secrets.ts";
import {
  insertChannel,
  type NewChannel,
  updateChannel,
  type WriteContext,
} from "../../data/channels/channels.ts";
import type { Trx } from "../../data/database.ts";
import type { Finding } from "../../lib/errors.ts";
import type { WantedChannel } from "./check.ts";
import { SetUpConflict, type Step } from "./plan.ts";

export interface ChannelDeps extends CheckChannelDeps, WriteContext {}

export interface ExistingApp {
  readonly id: string;
  readonly organizationId: string;
  readonly called: string;
  /** Uids of the app's channels in the config file. */
  readonly declared: readonly string[];
}

/** Updates a channel to match the config file, or creates it. Secret fields that the file omits stay unchanged. */
export async function reconcileChannel(
  deps: ChannelDeps,
  trx: Trx,
  app: ExistingApp,
  wanted: WantedChannel,
): Promise<Step> {
  const object = `channel ${wanted.uid} of ${app.called}`;
  const author = operatorOf(app.organizationId);
  const before = await trx
    .selectFrom("channels")
    .selectAll()
    .where("appId", "=", app.id)
    .where("uid", "=", wanted.uid)
    .forUpdate()
    .executeTakeFirst();
  if (!before) {
    const content = await checkWanted(deps, wanted);
    await requireReconcilable(deps, trx, app, content);
    const row = await insertChannel(trx, app, content, deps);
    await recordAudit(trx, author, { action: "create", entity: "channel", id: channelName(row) }, deps.nowMs);
    return { action: "create", object };
  }
  if (before.kind !== wanted.kind) {
    throw new SetUpConflict(
      `is a ${before.kind} channel, and a channel's kind cannot change; delete the channel first, or use another uid`,
    );
  }
  const kept = openSecrets(deps.keyring, before);
  const content = await checkWanted(deps, { ...wanted, config: { ...kept, ...wanted.config } }, kept);
  const { plain, secret } = findChannelChanges(before, kept, content);
  if (plain.length + secret.length === 0) return { action: "unchanged", object };

  await requireReconcilable(deps, trx, app, content);
  await updateChannel(trx, before, content, deps);
  const fields = [...plain, ...secret];
  const entry = { action: "update", entity: "channel", id: channelName(before), fields } as const;
  await recordAudit(trx, author, entry, deps.nowMs);
  return { action: "update", object, fields: [...plain, ...secret.map((name) => `${name} (secret)`)] };
}

/**
 * Validates a channel's config by the rules of its kind.
 *
 * @throws SetUpConflict if the config is invalid
 */
export async function checkWanted(
  deps: CheckChannelDeps,
  wanted: WantedChannel,
  storedSecrets: Readonly<Record<string, unknown>> = {},
): Promise<NewChannel> {
  const checked = await checkChannel(deps, { ...wanted, storedSecrets }, "");
  if (!checked.ok) throw toConflict(checked.error);
  const { uid, title, fromBlueprint } = wanted;
  return { ...checked.value, uid, title, fromBlueprint };
}

/**
 * Checks a channel against the channels that reconcile it and that the file does not declare. The file itself is checked as a whole.
 *
 * @throws SetUpConflict if events could be published twice
 */
async function requireReconcilable(
  deps: ChannelDeps,
  trx: Trx,
  { declared, id }: ExistingApp,
  channel: NewChannel,
): Promise<void> {
  const others = await trx
    .selectFrom("channels")
    .select(["uid", "kind", "config", "events"])
    .where("appId", "=", id)
    .where(sql<boolean>`config->>'reconciles' = ${channel.uid}`)
    .where("uid", "not in", declared)
    .execute();
  const findings = findTargetErrors(deps, channel, others);
  if (findings.length > 0) throw toConflict(findings);
}

const toConflict = ([first]: readonly Finding[]): SetUpConflict =>
  new SetUpConflict(`${first?.path ?? ""} ${first?.message ?? "is invalid"}`);
