import type { ConnectionRow } from "../data/tables.ts";
import type { Finding } from "../lib/errors.ts";
import type { ChannelKind } from "./kind.ts";

export interface ConnectedChannel {
  readonly kind: ChannelKind | undefined;
  /** Stored settings of the channel. Secret settings may be missing. */
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Returns why the channel cannot use the connection, or `undefined` if it can. Possible reasons: the channel fetches no events, its
 * settings exclude connections, or it calls an origin that the connection does not allow.
 */
export function findUnfitConnection(
  { kind, config }: ConnectedChannel,
  { allowedOrigins }: Pick<ConnectionRow, "allowedOrigins">,
): readonly Finding[] {
  const reject = (message: string): readonly Finding[] => [{ path: "connectionId", message }];
  if (kind === undefined || kind.addressed) return reject("requires a channel that fetches its events");
  if (config.connection === "none") return reject("must not be set while config.connection is `none`");
  const origin = kind.originOf?.(config);
  return origin === undefined || allowedOrigins.includes(origin)
    ? []
    : reject(`the channel calls ${origin}, which is not one of the connection's allowed origins`);
}
