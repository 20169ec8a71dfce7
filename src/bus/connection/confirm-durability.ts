import { batched } from "../../lib/batched.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { computeSlot } from "../keys.ts";
import { awaitDurability } from "./durability.ts";
import type { RedisBus } from "./redis.ts";

const MAX_REDIRECTS = 3;
const MARK_MS = "1000";
/** All callers that wait at the same time share one confirmation. */
const ONE_AT_A_TIME = { maxKeys: Number.POSITIVE_INFINITY, maxCalls: 1 } as const;

/**
 * Creates a function that resolves when the earlier writes to a Cluster slot are as durable as configured, whatever connection sent them.
 *
 * It writes the key `mark` and waits for that write. WAIT and WAITAOF only cover writes of their own connection, but Redis replicates and
 * syncs its writes in order, so the earlier writes are then covered too. The connection for large writes is used, because these commands
 * would delay small writes.
 *
 * @param mark a key in the slot, which holds no data
 * @returns a function that throws UnavailableError if the durability is not confirmed
 */
export function createConfirmDurability(
  { largeWrites }: Pick<RedisBus, "largeWrites">,
  mark: string,
): () => Promise<void> {
  const slot = largeWrites.isSlotted ? computeSlot(mark) : 0;

  async function confirm(): Promise<void> {
    let connection = largeWrites.connectionFor(slot);
    let isAsking = false;
    const sinceMs = performance.now();
    for (let redirects = 0; ; redirects++) {
      const { problem, wait } = connection;
      if (problem !== undefined) throw new UnavailableError(problem);
      if (wait === undefined) return;
      try {
        if (isAsking) connection.send("asking", [], sinceMs).catch(() => {});
        const written = connection.send("set", [mark, "", "PX", MARK_MS], sinceMs);
        await Promise.all([written, awaitDurability(connection, wait, sinceMs)]);
        return;
      } catch (error) {
        const redirect = redirects < MAX_REDIRECTS ? await largeWrites.redirect(error) : undefined;
        if (redirect === undefined) throw toUnavailable(error);
        ({ connection, isAsking } = redirect);
      }
    }
  }

  const confirmed = batched(async () => {
    await confirm();
    return new Map<string, never>();
  }, ONE_AT_A_TIME);
  return async () => void (await confirmed(mark));
}

const toUnavailable = (error: unknown): UnavailableError =>
  error instanceof UnavailableError
    ? error
    : new UnavailableError(`Redis: ${error instanceof Error ? error.message : error}`, { cause: error });
