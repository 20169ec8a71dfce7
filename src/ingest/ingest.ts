import { LRUCache } from "lru-cache";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Ingest, IngestResult } from "../event/ingest.ts";
import type { RawRequest } from "../event/received.ts";
import { upToEntries } from "../lib/up-to-entries.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { RefusedRequest } from "../verify/verify.ts";
import type { AnswerHandshake } from "./answer-handshake.ts";
import type { LiveChannel } from "./live-channel.ts";
import { wholeFailure } from "./outcome.ts";
import type { BufferWhilePaused } from "./pause-buffer.ts";
import type { Writer } from "./write.ts";

/** How often a channel's unverified deliveries are kept: enough to see what is wrong, too little to fill anything. */
const UNVERIFIED_EVERY_MS = 10_000;
const MAX_SAMPLED_CHANNELS = 10_000;

export interface IngestDeps {
  readonly write: Writer["write"];
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly answerHandshake: AnswerHandshake;
  /** Told of each result, for counters. */
  readonly observe: (channel: LiveChannel, result: IngestResult) => void;
}

/** The one path of every request: answers it where it is a handshake; else verifies, buffers where the channel is paused, writes. */
export function createIngest(deps: IngestDeps): Ingest<LiveChannel> {
  const { write, quarantine, bufferWhilePaused, answerHandshake, observe } = deps;
  const sampledAtMs = new LRUCache<number, number>(upToEntries(MAX_SAMPLED_CHANNELS));

  function refuse(channel: LiveChannel, request: RawRequest, refused: RefusedRequest): IngestResult {
    const result = { kind: "unverified", message: refused.message } as const;
    const before = sampledAtMs.get(channel.identity.number);
    // A clock that was set back must not silence a channel.
    if (before === undefined || Math.abs(request.arrivedAtMs - before) >= UNVERIFIED_EVERY_MS) {
      sampledAtMs.set(channel.identity.number, request.arrivedAtMs);
      keepSample(channel, refused);
    }
    observe(channel, result);
    return result;
  }

  async function answer(
    channel: LiveChannel,
    request: RawRequest,
    handshake: MatchedHandshake,
    signal: AbortSignal,
  ): Promise<IngestResult> {
    const reply = await answerHandshake(channel, handshake, { signal });
    if (!reply.ok) return refuse(channel, request, channel.sender.refuse(request, reply.error));
    const result = { kind: "handshake", reply: reply.value } as const;
    observe(channel, result);
    return result;
  }

  /** The sender waits for none of it, and is told 401 whatever becomes of it. */
  function keepSample({ identity }: LiveChannel, { message, redacted }: RefusedRequest): void {
    const failure = wholeFailure("signature_invalid", message);
    const write = { delivery: redacted(), items: [{ failure, keep: "newest" }] } as const;
    quarantine.put(identity, write, { signal: NEVER_ABORTED }).catch(() => {});
  }

  return async (channel, request, { signal, admit }) => {
    const { sender } = channel;
    const open = sender.findOpenHandshake(request);
    if (open !== undefined) return answer(channel, request, open, signal);
    const pending = sender.verify(request);
    const verified = pending instanceof Promise ? await pending : pending;
    if (!verified.ok) return refuse(channel, request, verified.error);
    const handshake = sender.findHandshake(request, verified.value);
    if (handshake !== undefined) return answer(channel, request, handshake, signal);
    // Only handshakes come by other methods.
    if (request.method !== "POST") {
      return refuse(channel, request, sender.refuse(request, "no handshake of the channel fits the request"));
    }
    admit?.(channel);
    const buffered =
      channel.pause === undefined ? undefined : await bufferWhilePaused(channel, verified.value, { signal });
    const result = buffered ?? (await write(channel, verified.value, { signal }));
    observe(channel, result);
    return result;
  };
}

const NEVER_ABORTED = new AbortController().signal;
