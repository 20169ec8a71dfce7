import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/**
 * Locks a file, and creates it if it is missing. Returns `undefined` if another process holds the lock. The lock ends at disposal,
 * or when the process ends for any reason.
 *
 * Node has no flock(2), so this uses SQLite, which locks its file in the kernel (fcntl(2)). The kernel releases such a lock with
 * the process. No other code may open the file. In POSIX, closing any descriptor of a file releases all locks of the process on
 * that file.
 *
 * @param contentionMs time to retry. Processes that start at the same moment block each other briefly, and without retries none
 *   may succeed
 * @throws a system error if the file cannot be created or written
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
