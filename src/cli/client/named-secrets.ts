import type { Channel } from "../../channels/entity.ts";
import { usageError } from "../exit.ts";

/**
 * Checks that a new secret removes no named secret of a channel, because a change replaces the whole list of secrets.
 *
 * @throws CommandError if the channel has named secrets
 */
export function requireNoNamedSecrets({ uid, secretNames }: Pick<Channel, "uid" | "secretNames">): void {
  const names = secretNames.filter((name) => name !== null);
  if (names.length === 0) return;
  throw usageError(
    `A new secret replaces all secrets of the channel ${uid}, also the named ones (${names.join(", ")}). Set them together with \`inlet channels update ${uid} -f <file>\`, in which \`config.secrets\` lists all of them.`,
  );
}
