import { Transform } from "node:stream";

export interface ArchivePart {
  readonly name: string;
  /** Size of the gzip file. */
  readonly bytes: number;
  /** Digest of the gzip file, in hexadecimal. */
  readonly sha256: string;
}

/** Table of contents of a backup archive: the list of its parts, and any data that the writer added. */
export interface Manifest {
  readonly parts: readonly ArchivePart[];
  readonly [about: string]: unknown;
}

/** Thrown when an archive is incomplete or was modified. The message does not contain the file name of the archive. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** File name of the table of contents. It is written after all parts, so an archive without this file is truncated. */
export const MANIFEST = "manifest.json";
/** Name of the last entry: the SHA-256 digest of the manifest, in the format of `sha256sum --check`. */
export const MANIFEST_DIGEST = "manifest.json.sha256";
export const PART_ENDING = ".gz";

/** Creates a stream that passes all bytes on, and calls `onBytes` with their number so far. */
export function countBytes(onBytes: ((bytes: number) => void) | undefined): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      onBytes?.(bytes);
      done(null, chunk);
    },
  });
}
