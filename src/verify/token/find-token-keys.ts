import { createSecretKey, type KeyObject } from "node:crypto";
import type { z } from "zod";
import { isValidAt, type PublicKey, parsePublicKeys } from "../keys/parse-keys.ts";
import type { tokenKeysSchema } from "../keys/settings.ts";
import { deriveKey, type SecretKeySettings } from "../secret-key.ts";
import type { VerifyContext } from "../verifier.ts";

/** The claims of a token about its key; none is proved. */
export interface TokenHeader {
  readonly algorithm: string;
  readonly keyId: string | undefined;
}

/**
 * The keys that a token may be signed under: those at hand, then, if they were not enough, those that are fetched anew.
 *
 * @throws UnavailableError where they cannot be fetched
 */
export type FindTokenKeys = (
  header: TokenHeader,
  context: VerifyContext,
  nowMs: number,
) => AsyncGenerator<readonly KeyObject[]>;

/** Compiles where the keys of tokens come from. @param bySecret the keys are secrets that the sender shares */
export function compileTokenKeys(
  settings: z.output<typeof tokenKeysSchema>,
  secretKey: SecretKeySettings,
  bySecret: boolean,
): FindTokenKeys {
  switch (settings.from) {
    case "secrets":
      return async function* ofSecrets(header, { secrets }, nowMs) {
        if (bySecret) {
          const keys = secrets.flatMap((secret) => deriveKey(secretKey, secret) ?? []);
          yield keys.map((key) => createSecretKey(key));
        } else {
          const keys = secrets.flatMap((secret) => parsePublicKeys(secret) ?? []);
          yield fitting(keys, header, nowMs);
        }
      };
    case "settings": {
      const keys = settings.keys.flatMap((text) => parsePublicKeys(text) ?? []);
      return async function* ofSettings(header, _, nowMs) {
        yield fitting(keys, header, nowMs);
      };
    }
    case "url":
      return async function* fetched(header, { keys }, nowMs) {
        yield fitting(await keys.get(settings.url, nowMs), header, nowMs);
        yield fitting((await keys.renew(settings.url, nowMs)) ?? [], header, nowMs);
      };
    default:
      return settings satisfies never;
  }
}

/** Of the id that the token names, where keys have ids, and for its algorithm. */
const fitting = (
  keys: readonly PublicKey[],
  { algorithm, keyId }: TokenHeader,
  nowMs: number,
): readonly KeyObject[] =>
  keys
    .filter((one) => one.id === undefined || keyId === undefined || one.id === keyId)
    .filter((one) => one.algorithm === undefined || one.algorithm === algorithm)
    .filter((one) => isValidAt(one, nowMs))
    .map(({ key }) => key);
