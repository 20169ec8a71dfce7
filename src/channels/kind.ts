import type { ServerResponse } from "node:http";
import type { z } from "zod";
import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import type { ChannelHandle, Ingest } from "../event/ingest.ts";
import type { Incoming } from "../http/context.ts";
import type { ErrorResponse } from "../http/problem.ts";
import type { Clock } from "../lib/clock.ts";
import type { Result } from "../lib/result.ts";
import type { Log } from "../log.ts";
import type { Outbound } from "../net/outbound.ts";
import type { Fault } from "../normalize/fault.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { Presets } from "../verify/presets.ts";
import type { BodyBudget } from "./body-budget.ts";
import type { CursorFormat, PolledSource, StreamSource } from "./source.ts";

/** The dependencies of a channel kind. A kind knows neither the normalizer nor Redis: it passes each delivery to `ingest`. */
export interface ChannelKindDeps<C extends ChannelHandle = ChannelHandle> {
  readonly ingest: Ingest<C>;
  /** Memory budget for request bodies. Push kinds charge each body to it. */
  readonly bodies: BodyBudget;
  /** Guarded HTTP client. Pull kinds make all their requests with it. */
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs the kind's `readLarge` on another thread. Pull kinds use it for large responses. */
  readonly readInWorker: ReadInWorker;
}

/**
 * Runs the kind's own `readLarge` on a worker thread, scheduled fairly between lanes. `lane` is the id of the organization.
 * Returns a `Fault` if the work takes too much CPU time or memory.
 *
 * @throws UnavailableError when the lane is full or the worker stopped
 */
export type ReadInWorker = (request: unknown, lane: string) => Promise<Result<unknown, Fault>>;

/** A request to a channel's address. This is not a web `Request`, because building one costs more than all other work on a delivery. */
export interface HookRequest {
  readonly incoming: Incoming;
  /**
   * For kinds that must wait until the response was sent. A kind responds only through its `HookReply`. `undefined` for some POST requests.
   */
  readonly outgoing: ServerResponse | undefined;
  readonly clientAddress: string;
  /** The id that the response carries in `X-Request-Id`. */
  readonly requestId: string;
}

/** The HTTP response to a `HookRequest`. */
export interface HookReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` for an empty body. */
  readonly body?: string;
}

/** A started channel kind. Disposal waits for or cancels all work in flight. */
export interface ChannelRuntime<C extends ChannelHandle = ChannelHandle> extends AsyncDisposable {
  /**
   * Push kinds only. The hooks route calls this for each request to a channel of this kind, after the rate-limit check.
   * The kind returns a reply, or an `ErrorResponse` for an expected rejection. An `ApiError` that it throws is sent as that error,
   * an `UnavailableError` as 503, and any other error as 500.
   */
  readonly receive?: (
    channel: C,
    request: HookRequest,
  ) => HookReply | ErrorResponse | Promise<HookReply | ErrorResponse>;
  /** Pull kinds with a long-lived connection, such as SSE. The supervisor opens and closes the streams. */
  readonly stream?: StreamSource;
  /** Pull kinds that send one request per poll. The poll schedule decides when to call it. */
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
  /** Defines how the rules of a channel read a delivery: named roots, fixed paths and items. */
  readonly profile: KindProfile;
  /** Whether senders post to the channel's address. Channels of a kind that fetches its events have no visible address. */
  readonly addressed: boolean;
  /**
   * Parses a large input that would block the event loop. Runs on a worker thread, so request and result must support structured clone. The
   * caller bounds their size.
   */
  readonly readLarge?: (request: unknown) => unknown;
  /** Pull kinds only. Parses and formats the cursors of its channels. */
  readonly cursor?: CursorFormat;
  /**
   * Pull kinds only. Returns the origin (scheme, host and port) that a channel with these stored settings calls. A connection must allow
   * it.
   */
  readonly originOf?: (settings: Readonly<Record<string, unknown>>) => string;
  /**
   * Returns whether a setting is missing that the channel needs to accept deliveries. `settings` is the stored `config` with its secrets
   * decrypted.
   */
  readonly needsSetup: (settings: Readonly<Record<string, unknown>>, presets: Presets) => boolean;
  /**
   * Push kinds only. Builds the smallest delivery that a channel accepts, for test events. If a delivery names its own type, it uses the
   * first of `types`.
   */
  readonly minimalDelivery?: (types: readonly string[]) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /** Starts the kind and returns its runtime. `C` is opaque to the kind, which passes each channel unchanged to `ingest`. */
  readonly start: <C extends ChannelHandle>(deps: ChannelKindDeps<C>) => Promise<ChannelRuntime<C>>;
}

/** All channel kinds of a gateway, by name. */
export type ChannelKinds = ReadonlyMap<ChannelKindName, ChannelKind>;
