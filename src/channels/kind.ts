import type { z } from "zod";
import type { ChannelConfig, ChannelKindName } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { PushRuntime } from "../ingest/receive.ts";
import type { Clock } from "../lib/clock.ts";
import type { Result } from "../lib/result.ts";
import type { Log } from "../log.ts";
import type { Outbound } from "../net/outbound.ts";
import type { Fault } from "../normalize/fault.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { Presets } from "../verify/presets.ts";
import type { CursorFormat, PolledSource, StreamSource } from "./source.ts";

/** Dependencies of a channel kind, provided by the gateway. A channel kind has no direct access to Redis. */
export interface ChannelKindDeps {
  /** HTTP client that blocks forbidden addresses. Channel kinds that fetch events use it for every request. */
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** `undefined` if the gateway exports no traces. */
  readonly tracing?: Tracing | undefined;
  /** Parses large responses on a worker thread, for channel kinds that fetch events. */
  readonly readInWorker: ReadInWorker;
}

/**
 * Runs the kind's own `readLarge` on a worker thread. Organizations get equal shares of that thread. Returns a `Fault` if the work takes
 * too much CPU time or memory.
 *
 * @param lane the id of the organization
 * @throws UnavailableError when too much work of the organization is queued, or when the worker thread stopped
 */
export type ReadInWorker = (request: unknown, lane: string) => Promise<Result<unknown, Fault>>;

/** Settings of a channel that reconciles another one, as far as they must fit that channel. */
export interface ReconcileSettings {
  /** Uid of the other channel. */
  readonly channelUid: string;
  readonly lookBackSeconds: number;
  readonly settleSeconds: number;
  /** Names of the headers and query parameters that the built deliveries have. Header names are in lower case. */
  readonly supplies: { readonly headers: readonly string[]; readonly query: readonly string[] };
}

/** A started channel kind. Disposal waits for or cancels all work in flight. */
export interface ChannelRuntime extends AsyncDisposable {
  /** Set by channel kinds that receive webhooks. The gateway reads the requests and asks the channel kind only about their heads. */
  readonly push?: PushRuntime;
  /** Set by channel kinds that keep a connection open, such as SSE. The supervisor opens and closes these connections. */
  readonly stream?: StreamSource;
  /** Set by channel kinds that poll. The poll scheduler decides when each poll runs. */
  readonly polled?: PolledSource;
}

/**
 * The contract of a channel kind. To add a kind, create a folder under `channels/` and add one line to `kinds.ts`. No other code may
 * depend on the name of a kind.
 *
 * The gateway calls `start` once. The API validates `config` with `configSchema`, which fills in defaults and also documents the fields
 * through its JSON Schema. `secretFields` names the top-level fields that are write-only: they are stored encrypted, apart from the
 * others, and never returned by the API.
 */
export interface ChannelKind {
  readonly kind: ChannelKindName;
  readonly configSchema: z.ZodType<ChannelConfig>;
  readonly secretFields: readonly string[];
  /** Top-level fields that belong to one installation, such as ids of connections. A blueprint must not contain them. */
  readonly installationFields?: readonly string[];
  /** Describes how the deliveries of this kind are read: the roots of paths, the paths that definitions cannot override, and the items. */
  readonly profile: KindProfile;
  /** Whether senders post to the address of a channel. False for channel kinds that fetch their events. */
  readonly addressed: boolean;
  /**
   * Parses input that is too large for the event loop. Runs on a worker thread, so the input and the result must support structured clone.
   */
  readonly readLarge?: (request: unknown) => unknown;
  /** Whether workers poll the channels of this kind, so that deliveries to other channels can wake them. */
  readonly isPolled?: boolean;
  /**
   * Returns how a channel finds the events that another channel missed. `undefined` if it publishes its own.
   *
   * @param config valid settings, in which defaults may be missing
   */
  readonly reconcileOf?: (config: Readonly<Record<string, unknown>>) => ReconcileSettings | undefined;
  /** Format of the stored read position. `undefined` for channel kinds that do not fetch events. */
  readonly cursor?: CursorFormat;
  /**
   * Returns the origin (scheme, host and port) that a channel with these stored settings calls. The channel's connection must allow this
   * origin. `undefined` for channel kinds that do not fetch events.
   */
  readonly originOf?: (config: Readonly<Record<string, unknown>>) => string;
  /**
   * Returns whether the channel still lacks a setting that it needs to accept deliveries.
   *
   * @param config the stored `config` with its secrets decrypted
   */
  readonly needsSetup: (config: Readonly<Record<string, unknown>>, presets: Presets) => boolean;
  /**
   * Builds the smallest valid delivery, to send as a test event. If the delivery names an event type, it uses the first entry of `types`.
   * `undefined` for kinds that fetch their events.
   */
  readonly minimalDelivery?: (types: readonly string[]) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /**
   * Returns the config to store for a channel that reads a stream of a preset, and the definitions for a channel without its own. The config
   * contains only the given settings, because the stream supplies the others at each reading. `undefined` if the config names no stream.
   *
   * @param config the same settings after `configSchema` has filled in all others
   */
  readonly fromStream?: (
    given: Readonly<Record<string, unknown>>,
    config: Readonly<Record<string, unknown>>,
  ) =>
    | { readonly config: Readonly<Record<string, unknown>>; readonly definitions: readonly Definition[] }
    | undefined;
  /** Starts this channel kind, once per gateway. */
  readonly start: (deps: ChannelKindDeps) => Promise<ChannelRuntime>;
}

export type ChannelKinds = ReadonlyMap<ChannelKindName, ChannelKind>;
