import type { z } from "zod";
import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import type { PushRuntime } from "../ingest/receive.ts";
import type { Clock } from "../lib/clock.ts";
import type { Result } from "../lib/result.ts";
import type { Log } from "../log.ts";
import type { Outbound } from "../net/outbound.ts";
import type { Fault } from "../normalize/fault.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { Presets } from "../verify/presets.ts";
import type { CursorFormat, PolledSource, StreamSource } from "./source.ts";

/** Dependencies that the gateway provides to a channel kind. A kind does not know the normalizer or Redis. */
export interface ChannelKindDeps {
  /** HTTP client that blocks disallowed addresses. Pull kinds make all their requests with it. */
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** Used by pull kinds to parse large responses. */
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

/** A started channel kind. Disposal waits for or cancels all work in flight. */
export interface ChannelRuntime extends AsyncDisposable {
  /** Set by push kinds. The gateway receives their deliveries, and asks the kind only about the head of a request. */
  readonly push?: PushRuntime;
  /** Set by pull kinds with a long-lived connection, such as SSE. The supervisor opens and closes the streams. */
  readonly stream?: StreamSource;
  /** Set by pull kinds that send separate requests on a schedule. The poll scheduler decides when to call it. */
  readonly polled?: PolledSource;
}

/**
 * The contract of a channel kind. To add a kind, create a folder under `channels/` and add one line to `kinds.ts`. No other code may
 * depend on the name of a kind.
 *
 * The gateway calls `start` once. The API validates `config` with `settings`, which fills in defaults and also documents the fields
 * through its JSON Schema. `secretSettings` names the top-level settings that are write-only: they are stored encrypted, apart from the
 * others, and never returned by the API.
 */
export interface ChannelKind {
  readonly kind: ChannelKindName;
  readonly settings: z.ZodType<CommonSettings>;
  readonly secretSettings: readonly string[];
  /** Describes how the deliveries of this kind are read: the roots of paths, the paths that definitions cannot override, and the items. */
  readonly profile: KindProfile;
  /** Whether senders post to the channel's address. If the kind fetches its events instead, its channels have no visible address. */
  readonly addressed: boolean;
  /**
   * Parses a large input that would block the event loop. Runs on a worker thread, so request and result must support structured clone. The
   * caller bounds their size.
   */
  readonly readLarge?: (request: unknown) => unknown;
  /** `undefined` for kinds that do not fetch their events. */
  readonly cursor?: CursorFormat;
  /**
   * Returns the origin (scheme, host and port) that a channel with these stored settings calls. The channel's connection must allow this
   * origin. `undefined` for kinds that do not fetch their events.
   */
  readonly originOf?: (settings: Readonly<Record<string, unknown>>) => string;
  /**
   * Returns whether the channel lacks a setting that it needs to accept deliveries.
   *
   * @param settings the stored `config` with its secrets decrypted
   */
  readonly needsSetup: (settings: Readonly<Record<string, unknown>>, presets: Presets) => boolean;
  /**
   * Builds the smallest delivery that a channel accepts, for test events. If the delivery states its own event type, that type is the first
   * entry of `types`. `undefined` for kinds that fetch their events.
   */
  readonly minimalDelivery?: (types: readonly string[]) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /** Starts the kind and returns its runtime. */
  readonly start: (deps: ChannelKindDeps) => Promise<ChannelRuntime>;
}

export type ChannelKinds = ReadonlyMap<ChannelKindName, ChannelKind>;
