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

/** The dependencies of a channel kind. It knows neither the normalizer nor Redis. */
export interface ChannelKindDeps<C extends ChannelHandle = ChannelHandle> {
  readonly ingest: Ingest<C>;
  /** For kinds that are sent bodies: the room that they have for them. */
  readonly bodies: BodyBudget;
  /** For kinds that fetch. */
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** For kinds that read what they fetch. */
  readonly readElsewhere: ReadElsewhere;
}

/**
 * Has the kind's own `readLarge` answer a request in another thread, in the lane of an organization. The error tells that it takes
 * too much time or memory.
 *
 * @throws UnavailableError
 */
export type ReadElsewhere = (request: unknown, lane: string) => Promise<Result<unknown, Fault>>;

/** A request to a channel's address: no web one, since a `Request` would cost each delivery more than all that is done with it. */
export interface HookRequest {
  readonly incoming: Incoming;
  /** For those that wait until it has ended; a kind answers by its reply alone. A POST may have none. */
  readonly outgoing: ServerResponse | undefined;
  /** Where it comes from. */
  readonly clientAddress: string;
  /** As its answer will tell it. */
  readonly requestId: string;
}

/** The answer to it. */
export interface HookReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** None: an empty one. */
  readonly body?: string;
}

/** A started kind. Disposal ends what is under way. */
export interface ChannelRuntime<C extends ChannelHandle = ChannelHandle> extends AsyncDisposable {
  /**
   * Push kinds only: answers one request to the address of one of its channels, or says what it is refused with. What it
   * throws is answered as an error; `UnavailableError` becomes a 503.
   */
  readonly receive?: (
    channel: C,
    request: HookRequest,
  ) => HookReply | ErrorResponse | Promise<HookReply | ErrorResponse>;
  /** Pull kinds whose senders keep a connection open. */
  readonly stream?: StreamSource;
  /** Pull kinds whose senders are asked. */
  readonly polled?: PolledSource;
}

/**
 * One way for events to arrive: a folder under `channels/` and a line in `kinds.ts`. Nothing else asks for a kind by its name.
 *
 * `settings` is the whole of a channel's `config`: it validates what the API is given, fills in defaults, and its JSON Schema
 * is the documentation. `secretSettings` names the top-level settings that are write-only: they are taken out of what is
 * stored in the clear, sealed, and never answered.
 */
export interface ChannelKind {
  readonly kind: ChannelKindName;
  readonly settings: z.ZodType<CommonSettings>;
  readonly secretSettings: readonly string[];
  /** How the rules of its channels read their deliveries. */
  readonly profile: KindProfile;
  /** True where deliveries come to the channel's address; false where the kind fetches them: its channels show no address. */
  readonly addressed: boolean;
  /** Reads what would hold up the event loop, in a thread of its own: request and answer can be cloned, and are bounded. */
  readonly readLarge?: (request: unknown) => unknown;
  /** Pull kinds: how their cursors are read and shown. */
  readonly cursor?: CursorFormat;
  /** Pull kinds: where their calls go (scheme, host, port), by the settings as stored; a connection must be allowed there. */
  readonly originOf?: (settings: Readonly<Record<string, unknown>>) => string;
  /** True where settings as stored (`config` with its opened secrets) lack something before a delivery can be accepted. */
  readonly needsSetup: (settings: Readonly<Record<string, unknown>>, presets: Presets) => boolean;
  /** Push kinds: the least delivery that its channels take, of the first of these types where a delivery names its type itself. */
  readonly leastDelivery?: (types: readonly string[]) => {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  };
  /** `C` is all that the gateway knows of a channel; a kind hands it back to `ingest` as it got it. */
  readonly start: <C extends ChannelHandle>(deps: ChannelKindDeps<C>) => Promise<ChannelRuntime<C>>;
}

/** The channel kinds of a gateway by their names. */
export type ChannelKinds = ReadonlyMap<ChannelKindName, ChannelKind>;
