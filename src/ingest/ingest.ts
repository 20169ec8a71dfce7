import { LRUCache } from "lru-cache";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Ingest, IngestResult } from "../event/ingest.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { upToEntries } from "../lib/up-to-entries.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { RejectedRequest, Verified } from "../verify/verify.ts";
import type { AnswerHandshake } from "./answer-handshake.ts";
import type { CompiledChannel } from "./compiled-channel.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import { createDeliveryFailure } from "./outcome.ts";
import type { BufferWhilePaused } from "./pause-buffer.ts";
import type { WriteOptions, Writer } from "./write.ts";

/**
 * Minimum time between stored samples of a channel's unverified deliveries, in milliseconds. More samples would fill the quarantine without
 * helping to debug.
 */
const UNVERIFIED_EVERY_MS = 10_000;
const MAX_SAMPLED_CHANNELS = 10_000;

export interface IngestDeps {
  readonly write: Writer["write"];
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly answerHandshake: AnswerHandshake;
  readonly observe: (channel: CompiledChannel, result: IngestResult) => void;
  readonly recorder: Pick<DeliveryRecorder, "settled" | "rejected" | "answeredHandshake">;
}

/**
 * Creates the function that processes every request to a push channel. It answers handshakes and verifies all other requests. Verified
 * deliveries are buffered while the channel is paused, and written otherwise.
 */
export function createIngest(deps: IngestDeps): Ingest<CompiledChannel> {
  const { write, quarantine, bufferWhilePaused, answerHandshake, observe, recorder } = deps;
  const sampledAtMs = new LRUCache<number, number>(upToEntries(MAX_SAMPLED_CHANNELS));

  function reject(
    channel: CompiledChannel,
    request: RawRequest,
    rejectedRequest: RejectedRequest,
  ): IngestResult {
    const result = { kind: "unverified", message: rejectedRequest.message } as const;
    const before = sampledAtMs.get(channel.identity.number);
    // `abs` lets sampling continue after the clock was set back.
    if (before === undefined || Math.abs(request.arrivedAtMs - before) >= UNVERIFIED_EVERY_MS) {
      sampledAtMs.set(channel.identity.number, request.arrivedAtMs);
      keepSample(channel, rejectedRequest);
    }
    observe(channel, result);
    const rejection = { httpStatus: 401, reason: result.message };
    recorder.rejected(channel, request.arrivedAtMs, rejection, () => request);
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

  /** Stores a sample of an unverified delivery in the background. The sender receives 401 even if storing fails. */
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

  // A plain function, because a chain of async functions would cost as much as verification. Most deliveries await only their write.
  return (channel, request, { signal, admit, onItems }) => {
    const { sender } = channel;

    function pass(verified: Verified): IngestResult | Promise<IngestResult> {
      if (!verified.ok) return reject(channel, request, verified.error);
      const delivery = verified.value;
      const handshake = sender.findHandshake(request, delivery);
      if (handshake !== undefined) return answer(channel, request, handshake, signal);
      // Other methods than POST are only allowed in handshakes.
      if (request.method !== "POST") {
        const rejectedRequest = sender.reject(request, "the request matches no handshake of the channel");
        return reject(channel, request, rejectedRequest);
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
