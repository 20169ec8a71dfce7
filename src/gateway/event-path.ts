import type { RedisBus } from "../bus/connection/redis.ts";
import { createPauses, type Pauses } from "../bus/groups/pauses.ts";
import { createFindKnownIds } from "../bus/publish/known-ids.ts";
import { createPublish } from "../bus/publish/publish.ts";
import { createQuarantineStore, type QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { ChannelKinds } from "../channels/kind.ts";
import type { Keyring } from "../data/keyring.ts";
import type { LiveChannels } from "../data/live-channels.ts";
import type { ChannelKindName } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { Ingest, IngestFetched, IngestResult } from "../event/ingest.ts";
import { createShakeHands, type ShakeHandsDeps } from "../ingest/answer-handshake.ts";
import { createRedriveKept, type RedriveKept } from "../ingest/drain-paused.ts";
import { createExplain, type Explain } from "../ingest/explain.ts";
import { createIngest, type IngestDeps, type MovePosition, type Redrive } from "../ingest/ingest.ts";
import type { LiveChannel } from "../ingest/live-channel.ts";
import { createKeepBack } from "../ingest/pause-buffer.ts";
import { createRulesCache, type RulesCache } from "../ingest/rules-cache.ts";
import { verifyChannelId } from "../lib/channel-id.ts";
import type { Clock } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import { createId } from "../lib/ids.ts";
import type { CompiledSchema, SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import type { Metrics } from "../metrics.ts";
import type { NormalizeDeps } from "../normalize/normalize.ts";
import { createKeyCache, type FetchPinned } from "../verify/keys/key-cache.ts";
import type { Presets } from "../verify/presets.ts";
import { type CompileDeps, compileChannel } from "./compile-channel.ts";

export interface EventPathDeps {
  readonly redis: RedisBus;
  readonly keyring: Keyring;
  readonly liveChannels: LiveChannels;
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
  readonly schemas: SchemaCompiler;
  /** What stands before `/hooks/{channelId}` in addresses. */
  readonly hooksUrl: () => string;
  /** Calls what senders' settings name or pin. */
  readonly fetchPinned: FetchPinned;
  readonly captureSecret: ShakeHandsDeps["captureSecret"];
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** How long changes could not be read, in ms. */
  readonly feedStalenessMs: () => number;
  readonly onAppended: (topic: string, bytes: number, maxBytes: number) => void;
}

/** All that a delivery passes through, put together. */
export interface EventPath {
  readonly rules: RulesCache;
  readonly quarantine: QuarantineStore;
  readonly ingest: Ingest<LiveChannel>;
  readonly ingestFetched: IngestFetched<LiveChannel>;
  readonly movePosition: MovePosition;
  readonly redrive: Redrive;
  readonly explain: Explain;
  readonly pauses: Pauses;
  readonly redriveKept: RedriveKept;
  /** The channel in force by its inner number; undefined where it was deleted. @throws UnavailableError */
  readonly findByNumber: (channelNumber: number) => Promise<LiveChannel | undefined>;
}

export function createEventPath(deps: EventPathDeps): EventPath {
  const { redis, keyring, liveChannels, fetchPinned, metrics, clock, feedStalenessMs, onAppended } = deps;
  const compile: CompileDeps = {
    ...deps,
    keys: createKeyCache(fetchPinned),
    onShadowed: (kind, reason) => metrics.shadowed.add(kind, reason),
  };
  const publish = createPublish({
    redis,
    onAppended,
    onCall: (seconds) => metrics.publishSeconds.observe(seconds),
    newQuarantineId: () => createId("qr", clock()),
  });
  const quarantine = createQuarantineStore({ redis, publish });
  const pauses = createPauses({ redis });
  const rules = createRulesCache({
    isChannelId: (channelId) => verifyChannelId(keyring.channelIdKey, channelId),
    load: async (channelId) => {
      const found = await liveChannels.findById(channelId);
      return found && { channel: compileChannel(compile, found.channel), leftMs: found.leftMs };
    },
    feedStalenessMs,
  });
  const shared: Pick<IngestDeps, keyof NormalizeDeps | "publish" | "observe"> = {
    publish,
    validatorFor: validators(deps.schemas),
    newEventId: () => createId("evt", clock()),
    observe: (channel, result) => count(metrics, channel.identity.kind, result),
  };
  const { ingest, ingestFetched, movePosition, redrive } = createIngest({
    ...shared,
    quarantine,
    keepBack: (...delivery) => keepBack(...delivery),
    shakeHands: createShakeHands({
      async captureSecret(channel, secret) {
        const isKept = await deps.captureSecret(channel, secret);
        // Here at once; elsewhere by the change feed.
        rules.drop(channel.number);
        return isKept;
      },
      async visit(url, options) {
        await fetchPinned(url, options).catch((cause) => {
          throw new UnavailableError("the address that a handshake names cannot be called", { cause });
        });
      },
    }),
  });
  const redriveKept = createRedriveKept({ ...shared, quarantine, redrive });
  const newDeliveryId = () => createId("dl", clock());
  const keepBack = createKeepBack({ quarantine, pauses, redriveKept, newDeliveryId });
  return {
    rules,
    quarantine,
    ingest,
    ingestFetched,
    movePosition,
    redrive,
    explain: createExplain({ ...shared, findKnownIds: createFindKnownIds({ redis }) }),
    pauses,
    redriveKept,
    async findByNumber(channelNumber) {
      const stored = await liveChannels.findByNumber(channelNumber);
      return stored && compileChannel(compile, stored);
    },
  };
}

/** Schemas did compile when they were written, so one that does not is out of order, not wrong. */
function validators(schemas: SchemaCompiler) {
  const { signal } = new AbortController();
  return (schema: NonNullable<Definition["schema"]>): CompiledSchema | Promise<CompiledSchema> =>
    schemas.peek(schema) ??
    schemas.compile(schema, { signal }).then((compiled) => {
      if (compiled.ok) return compiled.value;
      throw new UnavailableError("a stored schema no longer compiles", { cause: compiled.error });
    });
}

function count(metrics: Metrics, kind: ChannelKindName, result: IngestResult): void {
  metrics.deliveries.add(kind, result.kind);
  if (result.kind !== "accepted") return;
  const { published, duplicates, quarantine } = result.outcome;
  if (published > 0) metrics.events.add(kind, "published", published);
  if (duplicates > 0) metrics.events.add(kind, "duplicate", duplicates);
  for (const { reason } of quarantine) metrics.quarantined.add(kind, reason);
}
