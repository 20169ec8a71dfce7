import { parseJson } from "../../event/parse-json.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

type Secrets = Readonly<Record<string, unknown>>;

/** Encrypts the secret fields as one text that can be decrypted only for this channel. Returns `null` if there are no secrets. */
export function sealSecrets(keyring: Keyring, channelNumber: number, secrets: Secrets): string | null {
  if (Object.keys(secrets).length === 0) return null;
  return keyring.seal(JSON.stringify(secrets), secretsPlace(channelNumber));
}

/** @throws Error if the secrets were sealed for another channel or under another key */
export function openSecrets(
  keyring: Pick<Keyring, "open">,
  channel: Pick<ChannelRow, "number" | "sealedSettings">,
): Secrets {
  if (channel.sealedSettings === null) return {};
  return parseJson(keyring.open(channel.sealedSettings, secretsPlace(channel.number))) as Secrets;
}

/** Returns the names of the channel's `secrets`. `null` is a secret that verifies deliveries. Returns no values. */
export function listSecretNames(
  keyring: Pick<Keyring, "open">,
  channel: Pick<ChannelRow, "number" | "sealedSettings">,
): readonly (string | null)[] {
  const { secrets = [] } = openSecrets(keyring, channel);
  return (secrets as readonly { readonly name?: string }[]).map(({ name = null }) => name);
}

/** Encryption context (AAD) that binds sealed secrets to their channel. */
export const secretsPlace = (channelNumber: number): string => `channels/${channelNumber}/settings`;
