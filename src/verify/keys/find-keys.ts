import type { z } from "zod";
import { compileSource, type ReadText, type RequestView } from "../message/request-view.ts";
import { refuse } from "../message/signature.ts";
import type { Verdict, VerifyContext } from "../verifier.ts";
import { type PublicKey, parsePublicKeys } from "./parse-keys.ts";
import { compilePin, type Pin } from "./pinned-url.ts";
import type { signatureKeysSchema } from "./settings.ts";

type KeySettings = z.output<typeof signatureKeysSchema>;

interface Verdicts {
  readonly proved: () => Verdict;
  readonly mismatch: Verdict;
}

/** Asks `isRight` of the keys that the request may be signed under. @throws UnavailableError where they cannot be fetched */
export type TryKeys = (
  view: RequestView,
  context: VerifyContext,
  isRight: (keys: readonly PublicKey[]) => boolean,
  verdicts: Verdicts,
) => Verdict | Promise<Verdict>;

/** Compiles where keys come from: at once where they stand in the settings or are at hand. */
export function compileKeys(settings: KeySettings): TryKeys {
  switch (settings.from) {
    case "secrets": {
      // By secret: those of one channel, which is compiled anew when they change.
      const parsed = new Map<string, readonly PublicKey[]>();
      const keysOf = (secret: string): readonly PublicKey[] => {
        const keys = parsed.get(secret) ?? parsePublicKeys(secret) ?? [];
        parsed.set(secret, keys);
        return keys;
      };
      return (_, { secrets }, isRight, { proved, mismatch }) =>
        isRight(secrets.flatMap(keysOf)) ? proved() : mismatch;
    }
    case "settings": {
      const keys = settings.keys.flatMap((text) => parsePublicKeys(text) ?? []);
      return (_, __, isRight, { proved, mismatch }) => (isRight(keys) ? proved() : mismatch);
    }
    case "url": {
      const readId = settings.keyId && compileSource(settings.keyId);
      return (...args) => tryFetched(settings.url, readId, args);
    }
    case "request": {
      const readUrl = compileSource(settings.source);
      const pins = settings.pinned.flatMap((text) => pinOf(text));
      return (...args) => {
        const url = readUrl(args[0]);
        if (url === undefined) return refuse("missing", "the address of the key is missing or repeated");
        if (!pins.some((isPinned) => isPinned(url))) {
          return refuse("malformed", "the address of the key is none of those that are believed");
        }
        return tryFetched(url, undefined, args);
      };
    }
    default:
      return settings satisfies never;
  }
}

function tryFetched(
  url: string,
  readId: ReadText | undefined,
  [view, { keys: source }, isRight, { proved, mismatch }]: Parameters<TryKeys>,
): Verdict | Promise<Verdict> {
  const nowMs = view.request.arrivedAtMs;
  const id = readId?.(view);
  if (readId !== undefined && id === undefined)
    return refuse("missing", "the id of the key is missing or repeated");
  const judge = (keys: readonly PublicKey[]): Verdict | Promise<Verdict> => {
    if (isRight(named(keys, id))) return proved();
    // The sender may have new keys by now.
    return source
      .renew(url, nowMs)
      .then((renewed) => (renewed && isRight(named(renewed, id)) ? proved() : mismatch));
  };
  const found = source.get(url, nowMs);
  return found instanceof Promise ? found.then(judge) : judge(found);
}

const named = (keys: readonly PublicKey[], id: string | undefined): readonly PublicKey[] =>
  id === undefined ? keys : keys.filter((key) => key.id === id);

function pinOf(text: string): readonly Pin[] {
  const compiled = compilePin(text);
  return compiled.ok ? [compiled.value] : [];
}
