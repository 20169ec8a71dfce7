import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import type { Deps } from "../../kit/deps.ts";
import { createRejectedResult, type RedriveResult, redriveResultOf, unavailableResult } from "./schema.ts";

/**
 * Runs a quarantined item through the channel's current definitions.
 *
 * The write that publishes the events also removes the item from quarantine. An item that fails again stays in
 * quarantine. If it fails for a different reason, a new record with that reason replaces the old one.
 *
 * @throws UnavailableError when the result is unknown; it is safe to repeat the redrive
 */
export async function redriveItem(
  { quarantine, findCompiledChannel, redrive }: Deps,
  { record, delivery }: QuarantinedItem,
  options: { readonly asNewId: boolean; readonly signal: AbortSignal },
): Promise<RedriveResult> {
  const { id, item, definitions, reason, organizationId } = record;
  if (reason === "signature_invalid") {
    return createRejectedResult(id, "The delivery has an invalid signature and can never be redriven.");
  }
  const channel = await findCompiledChannel(record.channelNumber);
  if (!channel) return createRejectedResult(id, "The channel was deleted.");
  const { asNewId, signal } = options;
  const result = await redrive(channel, { id, item, definitions, asNewId, delivery }, { signal });
  const outcome = redriveResultOf(id, result);
  if (outcome.status === "kept" && !outcome.quarantine.some((receipt) => receipt.id === id)) {
    await quarantine.delete(organizationId, id);
  }
  return outcome;
}

/** Processes quarantined items again, one at a time, so that their events keep the order of arrival. Stops if Redis is unavailable. */
export async function redriveAll(
  deps: Deps,
  organizationId: string,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly RedriveResult[]> {
  const results: RedriveResult[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      const found = await deps.quarantine.find(organizationId, id);
      // The item was deleted or processed again after it was listed.
      if (!found) continue;
      results.push(await redriveItem(deps, found, { asNewId: false, signal }));
    } catch (error) {
      if (!(error instanceof UnavailableError) || results.length === 0) throw error;
      deps.log.warn(
        { event: "quarantine.redrive_cut_short", err: error },
        "Redrive stopped early because Redis is unavailable. The remaining items stay in quarantine.",
      );
      results.push(...ids.slice(index).map(unavailableResult));
      break;
    }
  }
  return results;
}
