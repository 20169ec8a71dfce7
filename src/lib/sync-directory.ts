import { open } from "node:fs/promises";

/** Syncs a directory to disk, so that files which were created or renamed in it survive a crash of the machine. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}
