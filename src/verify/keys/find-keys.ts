import type { z } from "zod";
import { ok, type Result } from "../../lib/result.ts";
import { compileSource, type RequestView } from "../message/request-view.ts";
import { memoizePerSecret, reject, type VerificationFailure, type VerifyContext } from "../verifier.ts";
import type { signatureKeysSchema } from "./config.ts";
import { type PublicKey, parsePublicKeys } from "./parse-keys.ts";
import { compilePins } from "./pinned-url.ts";

type KeyConfig = z.output<typeof signatureKeysSchema>;
type Keys = readonly PublicKey[];

export interface FoundKeys {
  /** The keys, or a promise if the keys must be fetched first. */
  readonly keys: Keys | Promise<Keys>;
  /** Fetches the keys again if no cached key matches. Resolves with `undefined` if the last fetch was too recent. */
  readonly renew?: () => Promise<Keys | undefined>;
}

/**
 * Finds the keys that may verify a request.
 *
 * @throws UnavailableError if the keys cannot be fetched. Returned promises reject with the same error
 */
export type FindKeys = (view: RequestView, context: VerifyContext) => Result<FoundKeys, VerificationFailure>;

export const areKeysFetched = ({ from }: Pick<KeyConfig, "from">): boolean =>
  from === "url" || from === "request";

/**
 * Compiles a function that finds the keys for a request.
 *
 * @param parse converts a secret to keys, if the channel's secrets are the keys
 */
export function compileKeys(
  config: KeyConfig,
  parse: (secret: string) => Keys | undefined = parsePublicKeys,
): FindKeys {
  switch (config.from) {
    case "secrets": {
      const keysOf = memoizePerSecret((secret): Keys => parse(secret) ?? []);
      return (_, { secrets }) => ok({ keys: keysOf(secrets).flat() });
    }
    case "settings": {
      const found = ok({ keys: config.keys.flatMap((text) => parsePublicKeys(text) ?? []) });
      return () => found;
    }
    case "url":
      return (view, context) => ok(fetched(config.url, view, context));
    case "request": {
      const readUrl = compileSource(config.source);
      const isPinned = compilePins(config.pinned);
      return (view, context) => {
        const url = readUrl(view);
        if (url === undefined) return reject("missing", "the URL of the key is missing or repeated");
        return isPinned(url)
          ? ok(fetched(url, view, context))
          : reject("malformed", "the URL of the key matches none of the pinned URLs");
      };
    }
    default:
      return config satisfies never;
  }
}

const fetched = (url: string, { request }: RequestView, { keys }: VerifyContext): FoundKeys => ({
  keys: keys.get(url, request.arrivedAtMs),
  renew: () => keys.renew(url, request.arrivedAtMs),
});
