import type { Clock } from "../../lib/clock.ts";
import { type CredentialsOf, NeedsReauthError, OriginNotAllowedError } from "../credentials.ts";
import { withCredentials } from "./kind.ts";
import { getConnectionKind } from "./kinds.ts";
import type { LoadedConnection, Renewer } from "./renewer.ts";

export interface CredentialsDeps {
  /**
   * Loads a connection with its secrets. Returns `undefined` if the connection no longer exists.
   *
   * @throws UnavailableError
   */
  readonly load: (connectionId: string) => Promise<LoadedConnection | undefined>;
  readonly renewer: Pick<Renewer, "renew">;
  /** Called each time a connection is used. Must not throw. */
  readonly noteUse: (connectionId: string) => void;
  readonly clock: Clock;
}

export function createCredentialsOf({ load, renewer, noteUse, clock }: CredentialsDeps): CredentialsOf {
  async function find(connectionId: string): Promise<LoadedConnection> {
    const connection = await load(connectionId);
    if (!connection) throw new NeedsReauthError("the connection no longer exists");
    return connection;
  }

  const isFresh = ({ tokens }: LoadedConnection): boolean =>
    tokens.accessToken !== undefined && (tokens.renewAtMs === undefined || clock() < tokens.renewAtMs);

  return (connectionId) => ({
    async authorize(request, options) {
      const stored = await find(connectionId);
      requireAllowed(stored, request.url);
      const kind = getConnectionKind(stored.kind);
      const connection =
        !kind.issuesTokens || isFresh(stored)
          ? stored
          : await renewer.renew(connectionId, stored.tokens.generation, options);
      // Check the URL again, because the allowed origins may have changed while the token was being renewed.
      requireAllowed(connection, request.url);
      const { accessToken, generation } = connection.tokens;
      const applied = kind.apply(connection.config, accessToken);
      noteUse(connectionId);
      return {
        request: withCredentials(request, applied),
        secretHeaders: Object.keys(applied.headers ?? {}),
        secretQuery: Object.keys(applied.query ?? {}),
        secretPath: applied.path,
        generation: kind.issuesTokens ? generation : undefined,
      };
    },
    async renew({ generation }, options) {
      if (generation === undefined) return false;
      const stored = await find(connectionId);
      const isNewer = stored.tokens.generation > generation && stored.tokens.accessToken !== undefined;
      if (!isNewer) await renewer.renew(connectionId, generation, options);
      return true;
    },
  });
}

function requireAllowed({ allowedOrigins }: LoadedConnection, url: string): void {
  const origin = URL.parse(url)?.origin;
  if (origin === undefined || !allowedOrigins.includes(origin)) {
    throw new OriginNotAllowedError("the URL is outside the allowed origins of the connection");
  }
}
