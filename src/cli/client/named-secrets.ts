import type { Channel } from "../../channels/entity.ts";
import { CommandError, usageError } from "../exit.ts";

/**
 * Returns the names of a channel's secrets.
 *
 * @throws CommandError if the gateway does not report them, as earlier versions
 */
export function readSecretNames({
  secretNames,
}: Partial<Pick<Channel, "secretNames">>): Channel["secretNames"] {
  if (secretNames !== undefined) return secretNames;
  throw new CommandError(
    "The gateway does not report which secrets a channel has. Upgrade it to the version of this command line.",
  );
}

/**
 * Checks that a new secret removes no named secret of a channel, because a change replaces the whole list of secrets.
 *
 * @throws CommandError if the channel has named secrets
 */
export function requireNoNamedSecrets(channel: Pick<Channel, "uid" | "secretNames">): void {
  const { uid } = channel;
  const names = readSecretNames(channel).filter((name) => name !== null);
  if (names.length === 0) return;
  throw usageError(
    `A new secret replaces all secrets of the channel ${uid}, also the named ones (${names.join(", ")}). Set them together with \`inlet channels update ${uid} -f <file>\`, in which \`config.secrets\` lists all of them.`,
  );
}
