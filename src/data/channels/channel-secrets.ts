import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

type Settings = Readonly<Record<string, unknown>>;

/** Encrypts the secret settings as one text that can be decrypted only for this channel. Returns `null` if there are no secrets. */
export function sealSettings(keyring: Keyring, channelNumber: number, secrets: Settings): string | null {
  if (Object.keys(secrets).length === 0) return null;
  return keyring.seal(JSON.stringify(secrets), settingsPlace(channelNumber));
}

/** @throws Error if the settings were sealed for another channel or under another key */
export function openSettings(
  keyring: Keyring,
  channel: Pick<ChannelRow, "number" | "sealedSettings">,
): Settings {
  if (channel.sealedSettings === null) return {};
  return JSON.parse(keyring.open(channel.sealedSettings, settingsPlace(channel.number)));
}

/** Encryption context (AAD) that binds sealed settings to their channel. */
export const settingsPlace = (channelNumber: number): string => `channels/${channelNumber}/settings`;
