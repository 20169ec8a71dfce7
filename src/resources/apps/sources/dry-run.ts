import type { StoredCursor } from "../../../bus/sources/source-positions.ts";
import type { CursorFormat, PolledSource } from "../../../channels/source.ts";
import type { ExplainedItem } from "../../../event/explained.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { createIsForgotten } from "../../../ingest/reconciled.ts";
import type { Clock } from "../../../lib/clock.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import type { CredentialsOf } from "../../../net/credentials.ts";
import { renderDryRun } from "./render.ts";
import type { DryRunEntity } from "./schema.ts";

export interface DryRunDeps {
  readonly explain: Explain;
  readonly credentialsOf: CredentialsOf;
  readonly clock: Clock;
}

/** The channel whose missed events a source publishes. */
interface ReconciledBy {
  readonly channel: CompiledChannel;
  readonly isForgotten: ReturnType<typeof createIsForgotten>;
}

/** Timeout of a dry run. Servers should respond much faster, and typical API clients wait longer. */
const TIMEOUT_MS = 30_000;

/**
 * Sends the requests of the next poll and explains how the gateway would process the responses.
 * @throws UnavailableError after `TIMEOUT_MS`
 */
export async function dryRun(
  { explain, credentialsOf, clock }: DryRunDeps,
  options: {
    readonly polled: PolledSource;
    readonly show: CursorFormat["show"];
    readonly channel: CompiledChannel;
    /** The channel whose missed events the source publishes. */
    readonly reconciled: ReconciledBy | undefined;
    readonly from: StoredCursor;
    readonly signal: AbortSignal;
  },
): Promise<DryRunEntity> {
  const { polled, show, channel, from, reconciled } = options;
  const { connectionId, config } = channel;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const run = await polled.dryRun({
      channel,
      config,
      credentials: connectionId === null ? undefined : credentialsOf(connectionId),
      cursor: from.value,
      startedAtMs: from.startedAtMs ?? clock(),
      reconcile: reconciled && {
        channelUid: reconciled.channel.identity.uid,
        isForgotten: reconciled.isForgotten,
      },
      signal: AbortSignal.any([options.signal, timeout]),
    });
    // A missed item takes the place of a webhook delivery with a body, whatever the method of the poll.
    const method = reconciled === undefined ? run.request.method : "POST";
    const items: ExplainedItem[] = [];
    for (const delivery of run.deliveries) {
      const fetched = { method, query: Object.create(null), ...delivery };
      items.push(...(await explain(reconciled?.channel ?? channel, fetched)));
    }
    return renderDryRun(show, run, items);
  } catch (error) {
    if (!timeout.aborted) throw error;
    throw new UnavailableError(`a dry run took more than ${TIMEOUT_MS} ms`, { cause: error });
  }
}
