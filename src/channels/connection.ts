import type { ConnectionRow } from "../data/tables.ts";
import type { Finding } from "../lib/errors.ts";
import type { ChannelKind } from "./kind.ts";

/** The part of a channel that a connection must fit. */
export interface ConnectedChannel {
  readonly kind: ChannelKind | undefined;
  /** The settings as stored, with or without the secret ones. */
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Why a channel cannot have the connection: nothing is fetched for it, its settings say that it has none, or it calls an address
 * outside the connection's allowed origins.
 */
export function findUnfitConnection(
  { kind, config }: ConnectedChannel,
  { allowedOrigins }: Pick<ConnectionRow, "allowedOrigins">,
): readonly Finding[] {
  const refuse = (message: string): readonly Finding[] => [{ path: "connectionId", message }];
  if (kind === undefined || kind.addressed) return refuse("goes with channels that fetch");
  if (config.connection === "none") return refuse("the channel's config.connection is none");
  const origin = kind.originOf?.(config);
  return origin === undefined || allowedOrigins.includes(origin)
    ? []
    : refuse(`the channel calls ${origin}, which is none of the connection's allowed origins`);
}
