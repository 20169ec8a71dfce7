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
import { type RedriveResult, redriveResultOf, refusedResult } from "./schema.ts";

export interface QuarantineDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  /** They hold copies of what is in quarantine. */
  readonly deliveryRecords: Pick<DeliveryRecords, "list" | "read" | "delete">;
  readonly explain: Explain;
  readonly schemas: Pick<SchemaCompiler, "check">;
  /** The channel in force; undefined where it was deleted. */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly redrive: Redrive;
  /** Aborts when the gateway ends. */
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

/** Tells the audit who reads, deletes or re-drives items, before that is done. @throws UnavailableError */
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
 * Runs a quarantined item through today's definitions. It leaves quarantine with the write that publishes its events; an item
 * that fails again stays. An item that fails for another reason has a record of that reason: the old one gives way to it.
 *
 * @throws UnavailableError when what became of it is not certain; running it again is safe.
 */
export async function redriveItem(
  { quarantine, findCompiledChannel, redrive }: QuarantineDeps,
  { record, delivery }: QuarantinedItem,
  options: { readonly asNewId: boolean; readonly signal: AbortSignal },
): Promise<RedriveResult> {
  const { id, item, definitions, reason, organizationId } = record;
  if (reason === "signature_invalid") {
    return refusedResult(id, "A delivery whose signature is not valid is never re-driven.");
  }
  const channel = await findCompiledChannel(record.channelNumber);
  if (!channel) return refusedResult(id, "The channel is gone.");
  const { asNewId, signal } = options;
  const result = await redrive(channel, { id, item, definitions, asNewId, delivery }, { signal });
  const outcome = redriveResultOf(id, result);
  if (outcome.status === "kept" && !outcome.quarantine.some((receipt) => receipt.id === id)) {
    await quarantine.delete(organizationId, id);
  }
  return outcome;
}
