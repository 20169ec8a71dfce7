/** One part of an archive. It is stored as a gzip file inside the tar file. */
export interface ArchivePart {
  readonly name: string;
  /** Size of the compressed part. */
  readonly bytes: number;
  /** Digest of the compressed part, in hexadecimal. */
  readonly sha256: string;
}

/** The archive's table of contents: all parts, and additional data from the writer. */
export interface Manifest {
  readonly parts: readonly ArchivePart[];
  readonly [about: string]: unknown;
}

/** Thrown when an archive is incomplete or was modified. The message names the part, but not the archive file. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** Name of the table of contents, which follows all parts. An archive without it was truncated. */
export const MANIFEST = "manifest.json";
/** Name of the last entry, which contains the digest of the manifest in the format of `sha256sum --check`. */
export const MANIFEST_DIGEST = "manifest.json.sha256";
/** File name extension of a part in the tar file. */
export const PART_ENDING = ".gz";
