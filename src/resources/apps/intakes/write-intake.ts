import { recordAudit } from "../../../data/accounts/audit.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import { updateChannel } from "../../../data/channels/channels.ts";
import type { Trx } from "../../../data/database.ts";
import { applySettings, findIntake, insertIntake, removeIntake } from "../../../data/intakes/intakes.ts";
import type { BlueprintRow, ChannelRow } from "../../../data/tables.ts";
import type { IntakeSettings } from "../../../event/intake.ts";
import type { Caller } from "../../../http/context.ts";
import { changedFields } from "../../../lib/json/changed-fields.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import type { Deps } from "../../kit/deps.ts";
import { BLUEPRINTS, getRow } from "../../kit/references.ts";
import { parseInput, retryVersionConflicts } from "../../kit/resource.ts";
import { awaitsApproval } from "../intake-approval.ts";
import { getIntake, type IntakeRows } from "../intake-scope.ts";
import { type CheckedIntake, checkIntake } from "./check-intake.ts";
import { intakeContentSchema } from "./schema.ts";

interface Before {
  readonly blueprint: BlueprintRow;
  readonly intake: ChannelRow | undefined;
  readonly secrets: Readonly<Record<string, unknown>>;
}

/**
 * Creates or changes the intake of a blueprint. The change is a new version of the blueprint. If a store must approve it, only secrets take
 * effect at once.
 *
 * @throws ApiError 404 if the organization has no such blueprint; 400 with each invalid setting
 */
export async function writeIntake(
  deps: Deps,
  caller: Caller,
  blueprintId: string,
  patch: object,
): Promise<IntakeRows> {
  const { db, keyring, clock } = deps;
  const written = await retryVersionConflicts(async () => {
    const blueprint = await getRow(db, caller, BLUEPRINTS, blueprintId);
    const intake = await findIntake(db, blueprintId);
    const before: Before = { blueprint, intake, secrets: intake ? openSecrets(keyring, intake) : {} };
    const input = parseInput(intakeContentSchema, mergeIntake(before, patch));
    const checked = await checkIntake(deps, blueprint, input, before.secrets);
    const settings = toSettings(checked);
    return db.transaction().execute(async (trx) => {
      const isSame = await lockVersion(trx, blueprint);
      if (!isSame) return undefined;
      const nowMs = clock();
      const fields = changedFields(
        { intake: { ...blueprint.intake, secrets: before.secrets.secrets } },
        { intake: { ...settings, secrets: checked.content.secrets.secrets } },
      ).map((path) => path.replace(/^(intake\.secrets).*/, "$1"));
      const context = { keyring, nowMs };
      const isApproved = !(await awaitsApproval(trx, blueprint, settings));
      const row = await writeRow(trx, before, checked, isApproved, context);
      if (row === undefined) return undefined;
      await trx
        .updateTable("blueprints")
        .set({
          intake: JSON.stringify(settings),
          version: blueprint.version + 1,
          updatedAt: new Date(nowMs),
        })
        .where("id", "=", blueprint.id)
        .execute();
      const entry = {
        action: "update",
        entity: "blueprint",
        id: blueprint.id,
        fields: [...new Set(fields)],
      } as const;
      if (fields.length > 0) await recordAudit(trx, caller, entry, nowMs);
      return { blueprint, intake: row, settings };
    });
  });
  return written;
}

/** Deletes the intake of a blueprint with its route keys and held items. @throws ApiError 404 if the blueprint has no intake */
export async function deleteIntake(
  { db, clock }: Pick<Deps, "db" | "clock">,
  caller: Caller,
  blueprintId: string,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const { blueprint, intake } = await getIntake(trx, caller, blueprintId, "update");
    const nowMs = clock();
    await removeIntake(trx, intake, nowMs);
    await trx
      .updateTable("blueprints")
      .set({ intake: null, version: blueprint.version + 1, updatedAt: new Date(nowMs) })
      .where("id", "=", blueprintId)
      .execute();
    const entry = { action: "update", entity: "blueprint", id: blueprintId, fields: ["intake"] } as const;
    await recordAudit(trx, caller, entry, nowMs);
  });
}

/** Applies a patch to the current settings. A new intake starts from the config of the blueprint's channel. */
function mergeIntake({ blueprint, secrets }: Before, patch: object): unknown {
  if (blueprint.intake !== null) {
    const { config, ...routing } = blueprint.intake;
    return mergePatch({ ...routing, config: { ...config, ...secrets } }, patch);
  }
  const { channel } = patch as { readonly channel?: unknown };
  const {
    registration: _,
    wakes: __,
    ...config
  } = blueprint.channels.find(({ uid }) => uid === channel)?.config ?? {};
  return mergePatch({ config }, patch);
}

const toSettings = ({
  routing: { kind: _, awaitsFirstApproval: __, ...routing },
  content,
}: CheckedIntake): IntakeSettings => ({
  ...routing,
  config: content.config,
});

/** Locks the blueprint. Returns false if it has changed since it was read. */
async function lockVersion(trx: Trx, { id, version }: BlueprintRow): Promise<boolean> {
  const row = await trx
    .selectFrom("blueprints")
    .select("id")
    .where("id", "=", id)
    .where("version", "=", version)
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns `undefined` if the intake has changed since it was read. */
async function writeRow(
  trx: Trx,
  { blueprint, intake }: Before,
  checked: CheckedIntake,
  isApproved: boolean,
  context: Parameters<typeof insertIntake>[3],
): Promise<ChannelRow | undefined> {
  if (intake === undefined) return insertIntake(trx, blueprint, { ...checked, isApproved }, context);
  const locked = await trx
    .selectFrom("channels")
    .selectAll()
    .where("number", "=", intake.number)
    .where("version", "=", intake.version)
    .forUpdate()
    .executeTakeFirst();
  if (!locked) return undefined;
  if (isApproved) return applySettings(trx, locked, checked, context);
  const { config, title, events } = locked;
  return updateChannel(trx, locked, { ...checked.content, config, title, events }, context);
}
