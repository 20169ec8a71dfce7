import type { Hono } from "hono";
import type { z } from "zod";
import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import type { ChannelHandle, Ingest } from "../event/ingest.ts";
import type { Log } from "../log.ts";

/** What a channel kind is handed. It knows neither the normalizer nor Redis. */
export interface ChannelKindDeps {
  /**
   * The channel behind an address, or undefined where there is none.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly findChannel: (channelId: string) => Promise<ChannelHandle | undefined>;
  readonly ingest: Ingest;
  readonly log: Log;
}

/** A started kind. Push kinds bring routes, mounted below `/hooks`; disposal ends what is under way. */
export interface ChannelRuntime extends AsyncDisposable {
  readonly routes?: Hono;
}

/**
 * One way for events to arrive: a folder under `channels/` and a line in `kinds.ts`.
 *
 * `settings` is the whole of a channel's `config`: it validates what the API is given, fills in defaults, and its JSON Schema
 * is the documentation. `secretSettings` names the top-level settings that are write-only: they are taken out of what is
 * stored in the clear, sealed, and never answered.
 */
export interface ChannelKind {
  readonly kind: ChannelKindName;
  readonly settings: z.ZodType<CommonSettings>;
  readonly secretSettings: readonly string[];
  /** True where settings as stored (`config` with its opened secrets) lack something before a delivery can be accepted. */
  readonly needsSetup: (settings: Readonly<Record<string, unknown>>) => boolean;
  readonly start: (deps: ChannelKindDeps) => Promise<ChannelRuntime>;
}
