/** A part of an archive: a gzip file inside a tar. */
export interface ArchivePart {
  readonly name: string;
  /** Size of the compressed part. */
  readonly bytes: number;
  /** Digest of the compressed part, in hexadecimal. */
  readonly sha256: string;
}

/** The table of contents: all parts, and additional data of the writer. */
export interface Manifest {
  readonly parts: readonly ArchivePart[];
  readonly [about: string]: unknown;
}

/** Thrown when an archive is incomplete or was modified. The message names the part, not the file. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** Entry after all parts. An archive without it was truncated. */
export const MANIFEST = "manifest.json";
/** Last entry, in the format of `sha256sum --check`. */
export const MANIFEST_DIGEST = "manifest.json.sha256";
/** File extension of a part in the tar. */
export const PART_ENDING = ".gz";
