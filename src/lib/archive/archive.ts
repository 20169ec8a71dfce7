export interface ArchivePart {
  readonly name: string;
  /** Size of the gzip file. */
  readonly bytes: number;
  /** Digest of the gzip file, in hexadecimal. */
  readonly sha256: string;
}

/** Table of contents of an archive: its parts, and any data that the writer has added. */
export interface Manifest {
  readonly parts: readonly ArchivePart[];
  readonly [about: string]: unknown;
}

/** Thrown when an archive is incomplete or was modified. The message does not contain the file name of the archive. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** Name of the table of contents. It follows all parts, so an archive without it was truncated. */
export const MANIFEST = "manifest.json";
/** Name of the last entry: the digest of the manifest, in the format of `sha256sum --check`. */
export const MANIFEST_DIGEST = "manifest.json.sha256";
export const PART_ENDING = ".gz";
