import type { Result } from "./result.ts";

/** Ownership of a data directory; held until disposed or until the process ends, however it ends. */
export interface DataLock extends Disposable {
  readonly dataDir: string;
}

export interface DataLockHeld {
  /** For the operator: names the directory and, where it is known, the process that holds it. */
  readonly message: string;
  readonly holderPid: number | undefined;
}

/** Makes the directory (0700) if it is missing and takes it; `dataDir` of the lock is its real, absolute path. */
export declare function acquireDataLock(dataDir: string): Result<DataLock, DataLockHeld>;
