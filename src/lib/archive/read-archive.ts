import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";
import { z } from "zod";
import { parseJson } from "../../event/parse-json.ts";
import {
  ArchiveError,
  type ArchivePart,
  countBytes,
  MANIFEST,
  MANIFEST_DIGEST,
  type Manifest,
  PART_ENDING,
} from "./archive.ts";

/** A part of the archive that is being read. Consume its content completely before you request the next part. */
export interface ReadPart {
  readonly name: string;
  /** Uncompressed content. */
  readonly content: Readable;
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  /** Called with the total number of bytes read from the file so far. */
  readonly onBytes?: (bytes: number) => void;
}

/** Maximum size in bytes of the manifest and of its digest, because both are read into memory. */
const MAX_SMALL_BYTES = 16 * 1024 * 1024;

const manifestSchema = z.looseObject({
  parts: z.array(z.object({ name: z.string(), bytes: z.number(), sha256: z.string() })),
});

/**
 * Reads a whole archive, and verifies that every part is present and unmodified.
 *
 * @throws ArchiveError that names the missing or modified part
 * @throws a system error if the file cannot be read
 */
export async function checkArchive(file: string, options: ReadOptions): Promise<Manifest> {
  const found: ArchivePart[] = [];
  const small = new Map<string, string>();
  for await (const { name, stream } of readEntries(file, options)) {
    if (small.has(MANIFEST_DIGEST))
      throw new ArchiveError(`the archive contains the entry ${name} after its end`);
    if (name === MANIFEST || name === MANIFEST_DIGEST) small.set(name, await readSmall(name, stream));
    else if (name.endsWith(PART_ENDING)) found.push(await digest(name.slice(0, -PART_ENDING.length), stream));
    else throw new ArchiveError(`the archive contains the unknown entry ${name}`);
  }
  const text = small.get(MANIFEST);
  const expectedDigest = small.get(MANIFEST_DIGEST)?.split(" ", 1)[0];
  if (text === undefined || expectedDigest === undefined)
    throw new ArchiveError("the archive is truncated: its end is missing");
  if (createHash("sha256").update(text).digest("hex") !== expectedDigest)
    throw new ArchiveError(`${MANIFEST} was modified (its SHA-256 does not match)`);
  const manifest = parseManifest(text);
  rejectDifference(manifest.parts, found);
  return manifest;
}

/** Yields the selected parts of an archive in order. Does not verify the parts, so call `checkArchive` first. */
export async function* readArchive(
  file: string,
  { isWanted, ...options }: ReadOptions & { readonly isWanted: (name: string) => boolean },
): AsyncGenerator<ReadPart> {
  for await (const { name: entry, stream } of readEntries(file, options)) {
    const name = entry.slice(0, -PART_ENDING.length);
    if (!entry.endsWith(PART_ENDING) || !isWanted(name)) {
      stream.resume();
      continue;
    }
    const content = createGunzip();
    pipeline(stream, content).catch((error: Error) => content.destroy(error));
    yield { name, content };
  }
}

async function* readEntries(file: string, { signal, onBytes }: ReadOptions) {
  const entries = extract();
  const source = createReadStream(file, { signal, highWaterMark: 256 * 1024 });
  let failure: unknown;
  const read = pipeline(source, countBytes(onBytes), entries).catch((error: unknown) => {
    failure = error;
  });
  let last: string | undefined;
  try {
    for await (const entry of entries) {
      yield { name: entry.header.name, stream: entry as unknown as Readable };
      last = entry.header.name;
    }
    await read;
    if (failure !== undefined) throw failure;
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    signal.throwIfAborted();
    await read;
    if ((failure as NodeJS.ErrnoException | undefined)?.syscall !== undefined) throw failure;
    const message =
      last === undefined
        ? "the archive is not a tar file"
        : `the archive cannot be read after the entry ${last}`;
    throw new ArchiveError(message, { cause: error });
  } finally {
    source.destroy();
  }
}

async function digest(name: string, stream: Readable): Promise<ArchivePart> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of readChunks(name, stream)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { name, bytes, sha256: hash.digest("hex") };
}

async function readSmall(name: string, stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of readChunks(name, stream)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_SMALL_BYTES)
      throw new ArchiveError(`the entry ${name} of the archive is larger than ${MAX_SMALL_BYTES} bytes`);
  }
  return Buffer.concat(chunks).toString();
}

async function* readChunks(name: string, stream: Readable): AsyncGenerator<Buffer> {
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    throw new ArchiveError(`the archive is truncated within the entry ${name}`, { cause: error });
  }
}

/** Parses and validates the manifest. A correct digest proves that the manifest is complete, but not that this program wrote it. */
function parseManifest(text: string): Manifest {
  try {
    return manifestSchema.parse(parseJson(text));
  } catch (cause) {
    throw new ArchiveError(`${MANIFEST} is not a valid table of contents`, { cause });
  }
}

function rejectDifference(listed: readonly ArchivePart[], found: readonly ArchivePart[]): void {
  const byName = new Map(found.map((part) => [part.name, part]));
  for (const { name, bytes, sha256 } of listed) {
    const part = byName.get(name);
    if (part === undefined) throw new ArchiveError(`the part ${name} is missing`);
    if (part.sha256 !== sha256 || part.bytes !== bytes)
      throw new ArchiveError(`the part ${name} was modified (its SHA-256 or size does not match)`);
  }
  if (found.length !== listed.length)
    throw new ArchiveError("the archive contains parts that its table of contents does not list");
}
