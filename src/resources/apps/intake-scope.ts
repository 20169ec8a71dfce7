import type { Queryable } from "../../data/database.ts";
import { findIntake } from "../../data/intakes/intakes.ts";
import type { BlueprintRow, ChannelRow } from "../../data/tables.ts";
import type { IntakeSettings } from "../../event/intake.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { BLUEPRINTS, getRow } from "../kit/references.ts";

export interface IntakeRows {
  readonly blueprint: BlueprintRow;
  readonly intake: ChannelRow;
  readonly settings: IntakeSettings;
}

/** @throws ApiError 404 if the organization has no such blueprint, or the blueprint has no intake */
export async function getIntake(
  db: Queryable,
  caller: Pick<Caller, "organizationId">,
  blueprintId: string,
  lock?: "update",
): Promise<IntakeRows> {
  const blueprint = await getRow(db, caller, BLUEPRINTS, blueprintId, lock);
  const intake = await findIntake(db, blueprint.id);
  if (!intake || blueprint.intake === null) throw notFound("intake");
  return { blueprint, intake, settings: blueprint.intake };
}
