import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/**
 * Acquires a lock on a file, which is created if missing; `undefined` if another process holds the lock. The lock lasts until disposal or
 * the end of the process, even by a crash.
 *
 * Node has no flock(2), but SQLite locks its file in the kernel (fcntl(2)), and the kernel releases such a lock with the process. No other
 * code may open the file: in POSIX, closing any descriptor of the file in this process releases the lock.
 *
 * @param contentionMs time to retry. Processes that start at the same moment block each other briefly, and one succeeds only by retrying
 * @throws if the file cannot be created or written
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
