import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

type Settings = Readonly<Record<string, unknown>>;

/** Encrypts the secret settings as one text, which can be decrypted only for this channel. Returns `null` if there are no secrets. */
export function sealSettings(keyring: Keyring, channelNumber: number, secrets: Settings): string | null {
  if (Object.keys(secrets).length === 0) return null;
  return keyring.seal(JSON.stringify(secrets), settingsPlace(channelNumber));
}

/** Decrypts the secret settings of a channel. @throws Error if they were sealed for another channel or key */
export function openSettings(
  keyring: Keyring,
  channel: Pick<ChannelRow, "number" | "sealedSettings">,
): Settings {
  if (channel.sealedSettings === null) return {};
  return JSON.parse(keyring.open(channel.sealedSettings, settingsPlace(channel.number)));
}

/** Returns the context to which a channel's encrypted settings are bound. */
export const settingsPlace = (channelNumber: number): string => `channels/${channelNumber}/settings`;
