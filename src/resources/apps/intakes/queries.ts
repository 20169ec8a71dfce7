import { canSeeAddresses } from "../../../channels/entity.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import { openAddress } from "../../../data/channels/address-columns.ts";
import type { Trx } from "../../../data/database.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import type { Deps } from "../../kit/deps.ts";
import { awaitsApproval } from "../intake-approval.ts";
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
