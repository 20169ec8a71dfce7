import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

type Settings = Readonly<Record<string, unknown>>;

/** The secret settings as one sealed text, bound to the channel; null where there are none. */
export function sealSettings(keyring: Keyring, channelNumber: number, secrets: Settings): string | null {
  if (Object.keys(secrets).length === 0) return null;
  return keyring.seal(JSON.stringify(secrets), settingsPlace(channelNumber));
}

/** The secret settings of a channel, opened. @throws Error when they were not sealed for it under this key. */
export function openSettings(
  keyring: Keyring,
  channel: Pick<ChannelRow, "number" | "sealedSettings">,
): Settings {
  if (channel.sealedSettings === null) return {};
  return JSON.parse(keyring.open(channel.sealedSettings, settingsPlace(channel.number)));
}

/** Where the secret settings are sealed. */
export const settingsPlace = (channelNumber: number): string => `channels/${channelNumber}/settings`;
