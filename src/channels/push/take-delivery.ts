import type { ChannelHandle } from "../../event/ingest.ts";
import type { ChannelKindDeps, HookContext } from "../kind.ts";
import { answerDelivery } from "./answer-delivery.ts";
import type { BodyBudget } from "./body-budget.ts";
import { readDelivery } from "./read-delivery.ts";

/** Of all deliveries of a kind that are being read. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;

/** Reads a request within the channel's limits, hands it to `ingest`, and answers what became of it. */
export function createTakeDelivery<C extends ChannelHandle>({
  ingest,
  clock,
}: Pick<ChannelKindDeps<C>, "ingest" | "clock">): (channel: C, c: HookContext) => Promise<Response> {
  const bodies: BodyBudget = { bytesLeft: MAX_BODIES_BYTES };
  return async (channel, c) => {
    const request = await readDelivery(c.env.incoming, channel, clock(), bodies);
    // A sender that hangs up does not undo its delivery: what was read is carried through.
    const result = await ingest(channel, request, { signal: NEVER_ABORTED });
    return answerDelivery(c, channel, result);
  };
}

const NEVER_ABORTED = new AbortController().signal;
