import { statfsSync } from "node:fs";

export interface DiskSpace {
  readonly freeBytes: number;
  /** Free share of the disk, from 0 to 1. */
  readonly freeFraction: number;
}

const MIB = 1024 * 1024;
const LEAST_FREE_BYTES = 256 * MIB;
const LEAST_FREE_FRACTION = 0.05;

/** Returns the space that is available to this user on the disk of a directory. */
export function readDiskSpace(directory: string): DiskSpace {
  const { bsize, bavail, blocks } = statfsSync(directory);
  return { freeBytes: bavail * bsize, freeFraction: blocks === 0 ? 1 : bavail / blocks };
}

/** Returns a warning if less than 256 MiB or 5 % of the disk are free, otherwise `undefined`. */
export function findDiskWarning({ freeBytes, freeFraction }: DiskSpace): string | undefined {
  if (freeBytes >= LEAST_FREE_BYTES && freeFraction >= LEAST_FREE_FRACTION) return undefined;
  return `The disk of the data directory has ${Math.floor(freeBytes / MIB)} MiB (${Math.floor(freeFraction * 100)} %) left. When it is full, the embedded servers stop.`;
}
