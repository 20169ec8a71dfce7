import type { DeliveryRecords } from "../../../bus/deliveries/delivery-records.ts";
import type { QuarantineStore } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import { recordAccess } from "../../../data/accounts/audit.ts";
import type { Author } from "../../../data/accounts/audit-entry.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { CompiledChannel } from "../../../ingest/compiled-channel.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { Redrive } from "../../../ingest/write.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { SchemaCompiler } from "../../../lib/json-schema/compiled-schema.ts";
import type { Log } from "../../../log.ts";
import { createRejectedResult, type RedriveResult, redriveResultOf } from "./schema.ts";

export interface QuarantineDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  /** Delivery records contain copies of quarantined items. */
  readonly deliveryRecords: Pick<DeliveryRecords, "list" | "read" | "delete">;
  readonly explain: Explain;
  readonly schemas: Pick<SchemaCompiler, "check">;
  /** Returns the current version of a channel, or `undefined` if the channel was deleted. */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly redrive: Redrive;
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

/** Writes an audit entry before items are read, deleted or processed again. @throws UnavailableError */
export const recordUse = (
  { db, clock }: Pick<QuarantineDeps, "db" | "clock">,
  author: Author,
  action: "read" | "delete" | "redrive",
  ids: readonly string[],
): Promise<void> =>
  recordAccess(
    db,
    author,
    ids.map((id) => ({ action, entity: "quarantinedItem", id })),
    clock(),
  );

/**
 * Runs a quarantined item through the channel's current definitions.
 *
 * The write that publishes the events also removes the item from quarantine. An item that fails again stays in
 * quarantine. If it fails for a different reason, a new record with that reason replaces the old one.
 *
 * @throws UnavailableError when the result is unknown; it is safe to repeat the redrive
 */
export async function redriveItem(
  { quarantine, findCompiledChannel, redrive }: QuarantineDeps,
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
