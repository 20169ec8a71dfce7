import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/**
 * Takes a lock by the file of that name, which is made where it is missing; undefined where another process has it. It is held until it
 * is disposed or the process ends, however it ends.
 *
 * Node has no flock(2), but SQLite locks its file in the kernel (fcntl(2)) and such a lock ends with its process, so nothing stale can be
 * left. The file is opened here only: in POSIX any other open and close of it by this process would drop the lock.
 *
 * @param contentionMs starters that come at the same moment each hold a step of the lock and let go again: one wins only if they try
 * again for so long
 * @throws where the file cannot be made or written
 */
export function acquireFileLock(file: string, contentionMs: number): Disposable | undefined {
  const database = new DatabaseSync(file);
  try {
    database.exec(`PRAGMA busy_timeout = ${contentionMs}; BEGIN EXCLUSIVE`);
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
    return undefined;
  }
  return { [Symbol.dispose]: () => database.isOpen && database.close() };
}
