import type { ConnectionRow } from "../data/tables.ts";
import type { Finding } from "../lib/errors.ts";
import type { ChannelKind } from "./kind.ts";

/** The parts of a channel that decide whether a connection fits. */
export interface ConnectedChannel {
  readonly kind: ChannelKind | undefined;
  /** The stored settings, with or without the secret ones. */
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Returns why the channel cannot use the connection. Either the channel fetches no events, or its settings exclude connections, or it
 * calls an origin that the connection does not allow.
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
