import { connect } from "node:net";
import { addAbortSignal, Readable } from "node:stream";
import { withTemporaryClient } from "../connection/general-connection.ts";
import { parseInfo } from "../connection/node-facts.ts";

/** A snapshot of Redis in RDB format. Disposal before the end of `content` aborts the transfer. */
export interface RdbTransfer extends Disposable {
  readonly version: string;
  readonly content: Readable;
}

/**
 * Idle timeout of the socket, in ms. While Redis prepares the snapshot, it sends a newline at least every ten seconds.
 *
 * Redis also disconnects a replica that reads no data for this long (`repl-timeout`).
 */
const MAX_SILENCE_MS = 60_000;
const MARK_BYTES = 40;
const END_OF_LINE = 10;

/**
 * Requests a snapshot by connecting as a replica that only wants the RDB file. Resolves once Redis has taken the snapshot, so later writes
 * are not included.
 *
 * BGSAVE is not used, because it writes a second file to the same disk. On a nearly full disk, this would stop a server with `appendfsync
 * always`. `redis-cli --rdb` is not used either, because it leaves the end mark in its output when it writes to a pipe.
 *
 * @throws Error when Redis provides no snapshot. `content` fails when the transfer is cut off.
 */
export async function openRdbTransfer(socketPath: string, signal: AbortSignal): Promise<RdbTransfer> {
  const info = await withTemporaryClient({ path: socketPath }, MAX_SILENCE_MS, (client) =>
    client.info("server"),
  );
  const version = parseInfo(info).get("redis_version") ?? "";
  const socket = addAbortSignal(signal, connect(socketPath));
  socket.setTimeout(MAX_SILENCE_MS, () =>
    socket.destroy(
      new Error(`Redis sent no data for ${MAX_SILENCE_MS / 1000} seconds during the snapshot transfer`),
    ),
  );
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let buffered: Buffer = Buffer.alloc(0);

  async function readMore(): Promise<void> {
    const { value, done } = await chunks.next();
    if (done) throw new Error("Redis closed the connection before the snapshot was complete");
    buffered = Buffer.concat([buffered, value]);
  }

  async function readLine(): Promise<string> {
    for (;;) {
      const end = buffered.indexOf(END_OF_LINE);
      if (end >= 0) {
        const line = buffered.subarray(0, end).toString().trim();
        buffered = buffered.subarray(end + 1);
        return line;
      }
      await readMore();
    }
  }

  /** Reads one line of a reply. Skips empty lines, which Redis sends to keep the connection alive. */
  async function readReply(): Promise<string> {
    for (;;) {
      const line = await readLine();
      if (line.startsWith("-")) throw new Error(`Redis rejected the snapshot request: ${line.slice(1)}`);
      if (line !== "") return line.slice(1);
    }
  }

  async function* readToMark(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const end = buffered.length - MARK_BYTES;
      const isEnd = end >= 0 && buffered.subarray(end).equals(mark);
      if (end > 0) {
        yield buffered.subarray(0, end);
        buffered = buffered.subarray(end);
      }
      if (isEnd) return;
      await readMore();
    }
  }

  async function* readBytes(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      if (buffered.length === 0) await readMore();
      const piece = buffered.subarray(0, left);
      left -= piece.length;
      buffered = buffered.subarray(piece.length);
      yield piece;
    }
  }

  try {
    // `capa eof` makes Redis stream the snapshot over the socket instead of writing a file.
    for (const option of ["capa eof", "rdb-only 1"]) {
      socket.write(`REPLCONF ${option}\r\n`);
      await readReply();
    }
    socket.write("SYNC\r\n");
    // The first line is the size of the snapshot, or `EOF:<mark>` if Redis does not know the size in advance.
    const header = await readReply();
    const mark = /^EOF:(.{40})$/.exec(header)?.[1];
    const pieces = mark === undefined ? readBytes(Number(header)) : readToMark(Buffer.from(mark));
    return {
      version,
      content: Readable.from(pieces, { objectMode: false }),
      [Symbol.dispose]: () => void socket.destroy(),
    };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
