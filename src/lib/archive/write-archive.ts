import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { pack } from "tar-stream";
import { syncDirectory } from "../sync-directory.ts";
import { type ArchivePart, countBytes, MANIFEST, MANIFEST_DIGEST, PART_ENDING } from "./archive.ts";

/** Writes an archive under a temporary name until `finish` succeeds. Disposal before `finish` removes all temporary files. */
export interface ArchiveWriter extends AsyncDisposable {
  /**
   * Adds a part. Wait for the returned promise before adding the next part.
   *
   * @param onBytes called with the number of uncompressed bytes written so far
   */
  readonly add: (name: string, content: Readable, onBytes?: (bytes: number) => void) => Promise<ArchivePart>;
  /** Adds the table of contents, syncs the file to disk and gives the file its final name. Returns the file size in bytes. */
  readonly finish: (about: Readonly<Record<string, unknown>>) => Promise<number>;
}

/** Fastest gzip level. Higher levels need 2 to 5 times the CPU time, but shrink the file by only a tenth. */
const GZIP_LEVEL = 1;
const CHUNK_BYTES = 256 * 1024;

/**
 * Starts an archive with file mode 0600: a tar file of gzip parts, followed by `manifest.json` and its digest.
 *
 * A tar entry needs its size in advance. Each part is therefore first written to an unlinked temporary file in the same directory.
 *
 * @throws system errors such as ENOSPC, at any time
 */
export async function createArchive(
  file: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<ArchiveWriter> {
  await using opening = new AsyncDisposableStack();
  // Use a random id instead of the process id. In containers, the process id never changes, and a killed process may have left its
  // file.
  const id = randomUUID();
  const partial = `${file}.partial-${id}`;
  const spoolFile = `${file}.${id}.part`;
  // Unlink the temporary file before creating the archive. A killed process then leaves only one file behind.
  const spool = opening.use(await open(spoolFile, "wx+", 0o600));
  await rm(spoolFile);
  const target = opening.use(await open(partial, "wx", 0o600));
  opening.defer(() => rm(partial, { force: true }));
  const tar = pack();
  const parts: ArchivePart[] = [];
  const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    let at = 0;
    for await (const chunk of chunks) at = await writeAt(target, at, chunk);
  };
  const written = pipeline(tar as unknown as Readable, write, { signal });
  written.catch(() => {});
  opening.defer(() => void tar.destroy());
  /** Waits for `work`, but rejects as soon as the archive file cannot be written, for example because the disk is full. */
  const unlessWriteFails = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([work, written.then(() => work)]);

  async function addSmall(name: string, text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    tar.entry({ name, mode: 0o600 }, text, (error) => (error ? reject(error) : resolve()));
    await unlessWriteFails(promise);
  }

  const owned = opening.move();
  return {
    async add(name, content, onBytes) {
      await spool.truncate();
      const hash = createHash("sha256");
      let bytes = 0;
      await pipeline(
        content,
        countBytes(onBytes),
        createGzip({ level: GZIP_LEVEL }),
        async (compressed: AsyncIterable<Buffer>) => {
          for await (const chunk of compressed) {
            hash.update(chunk);
            bytes = await writeAt(spool, bytes, chunk);
          }
        },
        { signal },
      );
      const part = { name, bytes, sha256: hash.digest("hex") };
      const entry = tar.entry({ name: `${name}${PART_ENDING}`, size: bytes, mode: 0o600 });
      await unlessWriteFails(pipeline(() => readFrom(spool), entry, { signal }));
      parts.push(part);
      return part;
    },
    async finish(about) {
      const text = `${JSON.stringify({ ...about, parts }, null, 2)}\n`;
      await addSmall(MANIFEST, text);
      const digest = createHash("sha256").update(text).digest("hex");
      await addSmall(MANIFEST_DIGEST, `${digest}  ${MANIFEST}\n`);
      tar.finalize();
      await written;
      await target.sync();
      const { size } = await target.stat();
      await place(partial, file);
      await syncDirectory(dirname(file));
      return size;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Renames the finished archive to its final name. Never replaces an existing file. */
async function place(partial: string, file: string): Promise<void> {
  try {
    await link(partial, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    // Fall back to renaming, because FAT and some network file systems do not support hard links.
    return rename(partial, file);
  }
  await rm(partial);
}

/** Writes the whole chunk at a position, and returns the position after the chunk. */
async function writeAt(file: FileHandle, position: number, chunk: Buffer): Promise<number> {
  for (let done = 0; done < chunk.length; ) {
    const { bytesWritten } = await file.write(chunk, done, chunk.length - done, position + done);
    done += bytesWritten;
  }
  return position + chunk.length;
}

async function* readFrom(file: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
