/** A part of an archive as it lies there: gzip, in a tar. */
export interface ArchivePart {
  readonly name: string;
  /** Of the compressed part. */
  readonly bytes: number;
  /** Of the compressed part, in hexadecimal. */
  readonly sha256: string;
}

/** The table of contents: each part, and all that the writer had to say. */
export interface Manifest {
  readonly parts: readonly ArchivePart[];
  readonly [about: string]: unknown;
}

/** An archive is not whole, or not as it was written. The message names the part, not the file. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** Comes after all parts: an archive without it was cut off. */
export const MANIFEST = "manifest.json";
/** Comes last, as `sha256sum --check` reads it. */
export const MANIFEST_DIGEST = "manifest.json.sha256";
/** A part's file is its name and this. */
export const PART_ENDING = ".gz";
