import { isDeepStrictEqual } from "node:util";
import { canSeeAddresses } from "../../../channels/entity.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import { openAddress } from "../../../data/channels/address-columns.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import type { WriteContext } from "../../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import { applySettings, findIntake, listApprovedIntakes } from "../../../data/intakes/intakes.ts";
import type { BlueprintRow, ChannelRow } from "../../../data/tables.ts";
import type { IntakeSettings } from "../../../event/intake.ts";
import { parseJson } from "../../../event/parse-json.ts";
import type { Caller } from "../../../http/context.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { readStoredConfig } from "../../../lib/stored-config.ts";
import type { Deps } from "../../kit/deps.ts";
import { getIntake, type IntakeRows } from "../intake-scope.ts";
import type { Intake } from "./schema.ts";

/** Changes the row of an intake and writes an audit entry if it changed. @throws ApiError 404 if the blueprint has no intake */
export function changeIntake(
  { db, clock }: Pick<Deps, "db" | "clock">,
  caller: Caller,
  blueprintId: string,
  action: AuditAction,
  change: (trx: Trx, before: IntakeRows) => Promise<ChannelRow>,
): Promise<IntakeRows> {
  return db.transaction().execute(async (trx) => {
    const before = await getIntake(trx, caller, blueprintId, "update");
    const intake = await change(trx, before);
    if (intake.version !== before.intake.version)
      await recordAudit(
        trx,
        caller,
        { action, entity: "blueprint", id: blueprintId, fields: ["intake"] },
        clock(),
      );
    return { ...before, intake };
  });
}

/**
 * Returns whether a store of another organization requires approval and has approved other settings of the intake.
 */
export async function awaitsApproval(
  db: Queryable,
  { id }: Pick<BlueprintRow, "id">,
  settings: IntakeSettings,
): Promise<boolean> {
  const approved = await listApprovedIntakes(db, id);
  return approved.some((one) => !isDeepStrictEqual(one, toJson(settings)));
}

const toJson = <T>(value: T): T => parseJson(JSON.stringify(value)) as T;

/**
 * Makes the stored settings of the blueprint's intake effective, unless a store has yet to approve them. Call it after an approval.
 */
export async function applyApproved(
  trx: Trx,
  deps: Pick<Deps, "channelKinds" | "presets">,
  blueprintId: string,
  context: WriteContext,
): Promise<void> {
  const blueprint = await trx
    .selectFrom("blueprints")
    .selectAll()
    .where("id", "=", blueprintId)
    .forUpdate()
    .executeTakeFirst();
  const intake = blueprint && (await findIntake(trx, blueprintId));
  if (!intake?.routing || !blueprint?.intake || (await awaitsApproval(trx, blueprint, blueprint.intake)))
    return;
  const { config, ...routing } = blueprint.intake;
  const { kind: kindName } = intake.routing;
  const kind = deps.channelKinds.get(kindName);
  const secrets = openSecrets(context.keyring, intake);
  const whole = { ...config, ...secrets };
  const read = kind && readStoredConfig(kind.configSchema, whole);
  if (!kind || !read?.ok) throw new Error("the approved settings of an intake are no longer valid");
  const state = kind.needsSetup(whole, deps.presets) ? "needsSetup" : "active";
  const { retention } = read.value.config;
  const content = { config, secrets, retention, state } as const;
  await applySettings(trx, intake, { routing: { ...routing, kind: kindName }, content }, context);
}

export async function renderIntake(
  { db, keyring, hooksUrl }: Pick<Deps, "db" | "keyring" | "hooksUrl">,
  caller: Caller,
  { blueprint, intake, settings }: IntakeRows,
): Promise<Intake> {
  return {
    blueprintId: blueprint.id,
    organizationId: blueprint.organizationId,
    url: canSeeAddresses(caller) ? `${hooksUrl}/hooks/${openAddress(keyring, intake)}` : null,
    ...settings,
    state: intake.state,
    awaitsApproval: await awaitsApproval(db, blueprint, settings),
    createdAt: formatTimestamp(intake.createdAt.getTime()),
    updatedAt: formatTimestamp(intake.updatedAt.getTime()),
  };
}
