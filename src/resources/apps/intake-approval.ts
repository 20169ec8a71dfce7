import { isDeepStrictEqual } from "node:util";
import { openSecrets } from "../../data/channels/channel-secrets.ts";
import type { WriteContext } from "../../data/channels/channels.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import { applySettings, findIntake, listApprovedIntakes } from "../../data/intakes/intakes.ts";
import type { BlueprintRow } from "../../data/tables.ts";
import type { IntakeSettings } from "../../event/intake.ts";
import { parseJson } from "../../event/parse-json.ts";
import { readStoredConfig } from "../../lib/stored-config.ts";
import type { Deps } from "../kit/deps.ts";

/**
 * Returns whether a store of another organization requires approval and has approved other settings of the intake.
 */
export async function awaitsApproval(
  db: Queryable,
  { id }: Pick<BlueprintRow, "id">,
  settings: IntakeSettings,
  options: { readonly except?: string } = {},
): Promise<boolean> {
  const approved = await listApprovedIntakes(db, id, options);
  return approved.some((one) => !isDeepStrictEqual(one, toJson(settings)));
}

const toJson = <T>(value: T): T => parseJson(JSON.stringify(value)) as T;

/**
 * Makes the stored settings of the blueprint's intake effective, unless another store has yet to approve them. Call it in the transaction
 * that approves the current version of an artifact's blueprint.
 */
export async function applyApproved(
  trx: Trx,
  deps: Pick<Deps, "channelKinds" | "presets">,
  { blueprintId, artifactId }: { readonly blueprintId: string; readonly artifactId: string },
  context: WriteContext,
): Promise<void> {
  const blueprint = await trx
    .selectFrom("blueprints")
    .selectAll()
    .where("id", "=", blueprintId)
    .forUpdate()
    .executeTakeFirst();
  const intake = blueprint && (await findIntake(trx, blueprintId));
  if (
    !intake?.routing ||
    !blueprint?.intake ||
    (await awaitsApproval(trx, blueprint, blueprint.intake, { except: artifactId }))
  )
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
