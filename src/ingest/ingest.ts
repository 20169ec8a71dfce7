import type { Publish } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { QuarantineItem } from "../bus/quarantine/quarantine-record.ts";
import type { Ingest, IngestFetched, IngestResult } from "../event/ingest.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { RawRequest, SourcePosition, VerifiedDelivery } from "../event/received.ts";
import { type NormalizeDeps, normalize, type Selection } from "../normalize/normalize.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { RefusedRequest } from "../verify/verify.ts";
import type { ShakeHands } from "./answer-handshake.ts";
import { type LiveChannel, publishPolicyOf } from "./live-channel.ts";
import { conflictsOf, outcomeOf, quarantineReceiptsOf } from "./outcome.ts";
import { createSampler } from "./sampler.ts";

/** How often a channel's unverified deliveries are kept: enough to see what is wrong, too little to fill anything. */
const UNVERIFIED_EVERY_MS = 10_000;
const MAX_SAMPLED_CHANNELS = 10_000;

export interface IngestDeps extends NormalizeDeps {
  readonly publish: Publish;
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly keepBack: KeepBack;
  readonly shakeHands: ShakeHands;
  /** Told of each result, for counters. */
  readonly observe: (channel: LiveChannel, result: IngestResult) => void;
}

/** One quarantined item to be run again; `id` is its record's. */
export interface RedriveRequest extends Selection {
  readonly delivery: VerifiedDelivery;
}

/**
 * Runs a quarantined item through today's definitions. Its record goes with the write that publishes its events; what
 * fails again stays in quarantine.
 *
 * @throws UnavailableError as `Ingest` does.
 */
export type Redrive = (
  channel: LiveChannel,
  request: RedriveRequest,
  options: { readonly signal: AbortSignal },
) => Promise<IngestResult>;

/**
 * Keeps a delivery of a paused channel, or of one whose kept deliveries are not all through; undefined where they are, and it
 * may pass.
 *
 * @throws UnavailableError when the quarantine is full, or what became of it is not certain.
 */
export type KeepBack = (
  channel: LiveChannel,
  delivery: VerifiedDelivery,
  options: { readonly signal: AbortSignal },
) => Promise<IngestResult | undefined>;

/** Moves the cursor of a source without a delivery. Throws as `IngestFetched` does. */
export type MovePosition = (
  channel: LiveChannel,
  options: { readonly signal: AbortSignal; readonly position: SourcePosition },
) => Promise<void>;

/** The one path of every request: answer it where it is a handshake; else verify, keep back where the channel is paused, normalize, publish together with what is known to fail, then the conflicts. */
export function createIngest(deps: IngestDeps): {
  readonly ingest: Ingest<LiveChannel>;
  readonly ingestFetched: IngestFetched<LiveChannel>;
  readonly movePosition: MovePosition;
  readonly redrive: Redrive;
} {
  const { publish, quarantine, keepBack, shakeHands, observe } = deps;
  const isSampled = createSampler({ everyMs: UNVERIFIED_EVERY_MS, maxKeys: MAX_SAMPLED_CHANNELS });

  async function write(
    channel: LiveChannel,
    delivery: VerifiedDelivery,
    { signal, again, position }: WriteOptions,
  ): Promise<IngestResult> {
    const pending = normalize(channel.rules, delivery, deps, again);
    const normalized = pending instanceof Promise ? await pending : pending;
    if (normalized.kind === "tooManyItems" && position === undefined) return normalized;
    const { received, events, failures } =
      normalized.kind === "tooManyItems" ? keptWhole(normalized.limit) : normalized;
    if (again === undefined && position === undefined && failures.length > 0) {
      const refused = failures.filter((failure) => dispositionOf(channel, failure) === "reject");
      if (refused.length > 0) return { kind: "rejected", failures: refused };
    }

    const { identity } = channel;
    const options = { signal, sinceMs: performance.now() };
    const { receipts, quarantineIds } = await publish(
      {
        channel: identity,
        events,
        policy: publishPolicyOf(channel),
        ...(failures.length > 0 ? { quarantine: { delivery, items: itemsOf(channel, failures) } } : {}),
        ...(again !== undefined && failures.length === 0 ? { release: [again.id] } : {}),
        ...(position && { position }),
      },
      options,
    );
    const quarantined = quarantineReceiptsOf(failures, quarantineIds);

    const conflicts = conflictsOf(events, receipts);
    if (conflicts.length > 0) {
      const items = itemsOf(channel, conflicts);
      // The position has waited for it: had the gateway died before, nobody would know of the conflict.
      const ids = await quarantine.put(
        identity,
        { delivery, items },
        { ...options, ...(position && { position }) },
      );
      quarantined.push(...quarantineReceiptsOf(conflicts, ids));
    }
    return { kind: "accepted", outcome: outcomeOf(received, events, receipts, quarantined) };
  }

  const redrive: Redrive = async (channel, request, { signal }) => {
    const result = await write(channel, request.delivery, { signal, again: request });
    observe(channel, result);
    return result;
  };
  const ingestFetched: IngestFetched<LiveChannel> = async (channel, delivery, options) => {
    const result = await write(channel, delivery, options);
    observe(channel, result);
    return result;
  };
  const movePosition: MovePosition = async (channel, { signal, position }) => {
    const batch = { channel: channel.identity, events: [], policy: publishPolicyOf(channel), position };
    await publish(batch, { signal });
  };
  function refuse(channel: LiveChannel, request: RawRequest, refused: RefusedRequest): IngestResult {
    const result = { kind: "unverified", message: refused.message } as const;
    if (isSampled(channel.identity.number, request.arrivedAtMs)) keepSample(channel, refused);
    observe(channel, result);
    return result;
  }

  async function answer(
    channel: LiveChannel,
    request: RawRequest,
    handshake: MatchedHandshake,
    signal: AbortSignal,
  ): Promise<IngestResult> {
    const reply = await shakeHands(channel, handshake, { signal });
    if (!reply.ok) return refuse(channel, request, channel.sender.refuse(request, reply.error));
    const result = { kind: "handshake", reply: reply.value } as const;
    observe(channel, result);
    return result;
  }

  /** The sender waits for none of it, and is told 401 whatever becomes of it. */
  function keepSample({ identity }: LiveChannel, { message, redacted }: RefusedRequest): void {
    const failure = { item: null, reason: "signature_invalid", detail: message, definitions: [] } as const;
    const write = { delivery: redacted(), items: [{ failure, keep: "newest" }] } as const;
    quarantine.put(identity, write, { signal: NEVER_ABORTED }).catch(() => {});
  }

  return {
    async ingest(channel, request, { signal, admit }) {
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
        return refuse(
          channel,
          request,
          sender.refuse(request, "no handshake of the channel fits the request"),
        );
      }
      admit?.(channel);
      const kept =
        channel.pause === undefined ? undefined : await keepBack(channel, verified.value, { signal });
      const result = kept ?? (await write(channel, verified.value, { signal }));
      observe(channel, result);
      return result;
    },
    ingestFetched,
    movePosition,
    redrive,
  };
}

interface WriteOptions {
  readonly signal: AbortSignal;
  readonly again?: RedriveRequest;
  readonly position?: SourcePosition;
}

/** What a fetched delivery with too many items is: nobody can be told to send less, and the next one must not wait for it. */
const keptWhole = (limit: number) => ({
  received: 1,
  events: [],
  failures: [
    {
      item: null,
      reason: "invalid_body",
      detail: `the delivery holds more than ${limit} items`,
      definitions: [],
    } satisfies ItemFailure,
  ],
});

const NEVER_ABORTED = new AbortController().signal;

/** What the channel's settings ask for where an item fails. */
function dispositionOf({ config }: LiveChannel, { reason }: ItemFailure): "reject" | QuarantineItem["keep"] {
  if (reason !== "no_match") return config.onInvalid === "reject" ? "reject" : "all";
  switch (config.onNoMatch) {
    case "reject":
      return "reject";
    case "quarantine":
      return "all";
    case "keepLast":
      return "newest";
    default:
      return config.onNoMatch satisfies never;
  }
}

function itemsOf(channel: LiveChannel, failures: readonly ItemFailure[]): readonly QuarantineItem[] {
  return failures.map((failure) => {
    const disposition = dispositionOf(channel, failure);
    // Conflicts, and what fails again when it is re-driven, are kept whatever the channel says: they cannot be refused any more.
    return { failure, keep: disposition === "newest" ? "newest" : "all" };
  });
}
