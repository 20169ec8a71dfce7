import { z } from "zod";
import type { Manifest } from "../../lib/archive/archive.ts";
import { CommandError } from "../exit.ts";

/** Of the file. Programs read those up to their own. */
export const FORMAT = 1;
/** Place for which the master key is sealed in a backup. */
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

/** What a backup says of itself; docs/operating.md promises it. */
const aboutSchema = z.object({
  /** The release that made it. */
  inlet: z.string(),
  /** RFC 3339, as are all times: when it was begun. */
  createdAt: z.string(),
  /** The moment of all that it holds. */
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
  /** Null: no gateway has started on it. `sealed`: under a passphrase; null: it is kept elsewhere. */
  masterKey: z.object({ id: z.string(), sealed: sealedKey.nullable() }).nullable(),
});
export type BackupAbout = z.infer<typeof aboutSchema>;

/** @throws CommandError where it is no backup of Inlet, or of a newer release */
export function parseAbout(manifest: Manifest): BackupAbout {
  const { format } = manifest;
  if (typeof format !== "number") throw new CommandError("The file is an archive, but no backup of Inlet.");
  if (format > FORMAT) {
    throw new CommandError(
      `The backup is of format ${format}, and this program reads ${FORMAT}: take a newer version of Inlet.`,
    );
  }
  const parsed = aboutSchema.safeParse(manifest);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CommandError(`The backup does not say of itself as it should: ${issue?.path.join(".")}`);
}
