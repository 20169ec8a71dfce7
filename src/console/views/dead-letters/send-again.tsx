import { type Schemas, send } from "../../api/client.ts";
import {
  type Batch,
  type Counts,
  NO_COUNTS,
  type RunOptions,
  redriveOf,
  type Scope,
  type Target,
} from "../../kit/failures/batch.ts";
import { formatCount } from "../../kit/text/numbers.ts";

type Redriven = Schemas["DeadLetterRedrive"];

/** Redrive of dead letters. Each one is removed from the list, and reappears if the handler rejects it for another day. */
export const createSending = (target: Target<{ readonly id: string }>): Batch => ({
  ...redriveOf(target, sendMatching),
  title: "Send to the handler again",
  verb: (count) => `Send ${count} again`,
  words: { released: "sent to the handler" },
  async preview(signal) {
    const { collection, scope, count: loaded } = target;
    const body = { ...scope, dryRun: true };
    const counted = scope
      ? await send<Redriven>("POST", `${collection}/redrive`, { body, signal })
      : undefined;
    const count = counted?.matched ?? loaded;
    return {
      count,
      content: (
        <>
          <p>
            <strong>{formatCount(count)}</strong> {count === 1 ? "event" : "events"} will be sent again,
            oldest first, each with another day of attempts. Rejected events come back here.
          </p>
          {counted?.breaksOrder && (
            <p class="note warn">The handler is ordered, but gets these events after later ones.</p>
          )}
        </>
      ),
    };
  },
});

/** Number of dead letters per request. Several small requests let the page show progress and let the user stop. */
const BATCH = 200;

async function sendMatching(
  collection: string,
  scope: Scope,
  { signal, onProgress }: RunOptions,
): Promise<Counts> {
  let counts = NO_COUNTS;
  while (!signal.aborted) {
    const body = { ...scope, limit: BATCH };
    const { matched, redriven } = await send<Redriven>("POST", `${collection}/redrive`, { body, signal });
    counts = { ...counts, released: counts.released + redriven };
    onProgress(counts);
    if (redriven === 0 || redriven >= matched) break;
  }
  return counts;
}
