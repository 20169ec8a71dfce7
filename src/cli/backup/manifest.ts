import { z } from "zod";
import type { Manifest } from "../../lib/archive/archive.ts";
import { CommandError } from "../exit.ts";

/** Version of the backup format. Backups of this version and of all earlier versions can be restored. */
export const FORMAT = 1;
/** Encryption context of the master key in a backup. Decryption fails under any other context. */
export const MASTER_KEY_PLACE = "backup/masterKey";
export const REDIS_PART = "redis.rdb";
export const tablePart = (table: string): string => `postgres/${table}.copy`;

const count = z.int().min(0);
const sealedKey = z.object({
  kdf: z.literal("scrypt"),
  n: count,
  r: count,
  p: count,
  salt: z.string(),
  text: z.string(),
});

/** Schema of a backup's manifest. The file docs/operating.md documents the fields. */
const aboutSchema = z.object({
  /** Version of Inlet that created the backup. */
  inlet: z.string(),
  /** Start time of the backup (RFC 3339). */
  createdAt: z.string(),
  /** Time of the database snapshots (RFC 3339). */
  takenAt: z.string(),
  redis: z.object({ version: z.string(), bytes: count }),
  postgres: z.object({
    version: z.string(),
    migrations: z.array(
      z.object({ number: count, name: z.string(), checksum: z.string(), servedFrom: count }),
    ),
    tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()), rows: count })),
    sequences: z.record(z.string(), z.string()),
  }),
  /**
   * Master key of the gateway, or `null` if the gateway was never started. `sealed` is the encrypted key, or `null` if the backup
   * omits the key.
   */
  masterKey: z.object({ id: z.string(), sealed: sealedKey.nullable() }).nullable(),
});
export type BackupAbout = z.infer<typeof aboutSchema>;

/**
 * Validates a backup's manifest.
 *
 * @throws CommandError if the file is not a backup of this program, or comes from a newer version
 */
export function parseAbout(manifest: Manifest): BackupAbout {
  const { format } = manifest;
  if (typeof format !== "number")
    throw new CommandError("The file is an archive, but not a backup of Inlet.");
  if (format > FORMAT) {
    throw new CommandError(
      `The backup has format ${format}, but this version reads only up to ${FORMAT}. Use a newer version of Inlet.`,
    );
  }
  const parsed = aboutSchema.safeParse(manifest);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CommandError(`The manifest of the backup is invalid: ${issue?.path.join(".")}`);
}
