import type { Channel } from "../../channels/entity.ts";
import type { Preset } from "../../verify/presets.ts";
import { usageError } from "../exit.ts";

/**
 * Checks that a new secret removes no named secret of a channel. A change replaces the whole list of secrets, and the API does not show
 * which of them exist.
 *
 * @throws CommandError if the preset has named secrets, and the channel has a secret
 */
export function requireNoNamedSecrets(
  { uid, state }: Pick<Channel, "uid" | "state">,
  { otherSecrets }: Pick<Preset, "otherSecrets">,
): void {
  if (state === "needsSetup" || otherSecrets.length === 0) return;
  const names = otherSecrets.map(({ name }) => name).join(", ");
  throw usageError(
    `A new secret replaces all secrets of the channel ${uid}, also the named ones (${names}). Set them together with \`inlet channels update ${uid} -f <file>\`, in which \`config.secrets\` lists all of them.`,
  );
}
