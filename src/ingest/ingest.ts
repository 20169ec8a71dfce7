import { LRUCache } from "lru-cache";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Ingest, IngestResult } from "../event/ingest.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { upToEntries } from "../lib/up-to-entries.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { RejectedRequest, Verified } from "../verify/verify.ts";
import type { AnswerHandshake } from "./answer-handshake.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import type { CompiledChannel } from "./compiled-channel.ts";
import { createDeliveryFailure } from "./outcome.ts";
import type { BufferWhilePaused } from "./pause-buffer.ts";
import type { WriteOptions, Writer } from "./write.ts";

/** How often a channel's unverified deliveries are kept: enough to see what is wrong, too little to fill anything. */
const UNVERIFIED_EVERY_MS = 10_000;
const MAX_SAMPLED_CHANNELS = 10_000;

export interface IngestDeps {
  readonly write: Writer["write"];
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly answerHandshake: AnswerHandshake;
  /** Told of each result, for counters. */
  readonly observe: (channel: CompiledChannel, result: IngestResult) => void;
  readonly recorder: Pick<DeliveryRecorder, "settled" | "rejected" | "answeredHandshake">;
}

/** The one path of every request: answers it where it is a handshake; else verifies, buffers where the channel is paused, writes. */
export function createIngest(deps: IngestDeps): Ingest<CompiledChannel> {
  const { write, quarantine, bufferWhilePaused, answerHandshake, observe, recorder } = deps;
  const sampledAtMs = new LRUCache<number, number>(upToEntries(MAX_SAMPLED_CHANNELS));

  function reject(channel: CompiledChannel, request: RawRequest, refused: RejectedRequest): IngestResult {
    const result = { kind: "unverified", message: refused.message } as const;
    const before = sampledAtMs.get(channel.identity.number);
    // A clock that was set back must not silence a channel.
    if (before === undefined || Math.abs(request.arrivedAtMs - before) >= UNVERIFIED_EVERY_MS) {
      sampledAtMs.set(channel.identity.number, request.arrivedAtMs);
      keepSample(channel, refused);
    }
    observe(channel, result);
    const refusal = { httpStatus: 401, reason: result.message };
    recorder.rejected(channel, request.arrivedAtMs, refusal, () => request);
    return result;
  }

  async function answer(
    channel: CompiledChannel,
    request: RawRequest,
    handshake: MatchedHandshake,
    signal: AbortSignal,
  ): Promise<IngestResult> {
    const reply = await answerHandshake(channel, handshake, { signal });
    if (!reply.ok) return reject(channel, request, channel.sender.reject(request, reply.error));
    const result = { kind: "handshake", reply: reply.value } as const;
    observe(channel, result);
    recorder.answeredHandshake(channel, request, result.reply.status);
    return result;
  }

  /** The sender waits for none of it, and is told 401 whatever becomes of it. */
  function keepSample({ identity }: CompiledChannel, { message, redacted }: RejectedRequest): void {
    const failure = createDeliveryFailure("signature_invalid", message);
    const write = { delivery: redacted(), items: [{ failure, keep: "newest" }] } as const;
    quarantine.put(identity, write, { signal: NEVER_ABORTED }).catch(() => {});
  }

  async function buffer(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    options: Pick<WriteOptions, "signal" | "onItems"> & { readonly request: RawRequest },
  ) {
    const { signal, request } = options;
    const buffered = await bufferWhilePaused(channel, delivery, { signal });
    if (buffered === undefined) return write(channel, delivery, options);
    observe(channel, buffered);
    recorder.settled(channel, delivery, buffered, request);
    return buffered;
  }

  // A chain of async functions would take as long as verifying does: nearly every delivery waits for its write alone.
  return (channel, request, { signal, admit, onItems }) => {
    const { sender } = channel;

    function pass(verified: Verified): IngestResult | Promise<IngestResult> {
      if (!verified.ok) return reject(channel, request, verified.error);
      const delivery = verified.value;
      const handshake = sender.findHandshake(request, delivery);
      if (handshake !== undefined) return answer(channel, request, handshake, signal);
      // Only handshakes come by other methods.
      if (request.method !== "POST") {
        const refused = sender.reject(request, "no handshake of the channel fits the request");
        return reject(channel, request, refused);
      }
      admit?.(channel);
      return channel.pause === undefined
        ? write(channel, delivery, { signal, request, onItems })
        : buffer(channel, delivery, { signal, request, onItems });
    }

    const open = sender.findOpenHandshake(request);
    if (open !== undefined) return answer(channel, request, open, signal);
    const verified = sender.verify(request);
    return verified instanceof Promise ? verified.then(pass) : pass(verified);
  };
}

const NEVER_ABORTED = new AbortController().signal;
