import { connect } from "node:net";
import { addAbortSignal, Readable } from "node:stream";
import { askOnce } from "../connection/general-connection.ts";

/** What Redis held at one moment, as an RDB file. Disposed before its end it is cut off. */
export interface RdbTransfer extends Disposable {
  /** Of Redis. */
  readonly version: string;
  readonly content: Readable;
}

/** Redis sends a line end at least every ten seconds while it prepares, and waits no longer than this for a reader. */
const MAX_SILENCE_MS = 60_000;
const MARK_BYTES = 40;
const END_OF_LINE = 10;

/**
 * Asks a server for all that it holds, as a replica would that only wants the RDB file. Resolves once the moment is set: nothing that is
 * written later is in it.
 *
 * BGSAVE would write the file beside the append-only file first: on a disk that is nearly full that ends a server with `appendfsync
 * always`. `redis-cli --rdb` leaves its end mark in what it writes to a pipe.
 *
 * @throws Error where Redis gives none; `content` fails where it is cut off
 */
export async function openRdbTransfer(socketPath: string, signal: AbortSignal): Promise<RdbTransfer> {
  const info = await askOnce({ path: socketPath }, MAX_SILENCE_MS, (client) => client.info("server"));
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? "";
  const socket = addAbortSignal(signal, connect(socketPath));
  socket.setTimeout(MAX_SILENCE_MS, () => socket.destroy(new Error("Redis has fallen silent")));
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let held: Buffer = Buffer.alloc(0);

  async function more(): Promise<void> {
    const { value, done } = await chunks.next();
    if (done) throw new Error("Redis has ended the transfer before its end");
    held = Buffer.concat([held, value]);
  }

  async function readLine(): Promise<string> {
    for (;;) {
      const end = held.indexOf(END_OF_LINE);
      if (end >= 0) {
        const line = held.subarray(0, end).toString().trim();
        held = held.subarray(end + 1);
        return line;
      }
      await more();
    }
  }

  /** Its next answer that says something: line ends alone say that it goes on. */
  async function readAnswer(): Promise<string> {
    for (;;) {
      const line = await readLine();
      if (line.startsWith("-")) throw new Error(`Redis gives no snapshot: ${line.slice(1)}`);
      if (line !== "") return line.slice(1);
    }
  }

  async function* readToMark(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const end = held.length - MARK_BYTES;
      const isEnd = end >= 0 && held.subarray(end).equals(mark);
      if (end > 0) {
        yield held.subarray(0, end);
        held = held.subarray(end);
      }
      if (isEnd) return;
      await more();
    }
  }

  async function* readBytes(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      if (held.length === 0) await more();
      const piece = held.subarray(0, left);
      left -= piece.length;
      held = held.subarray(piece.length);
      yield piece;
    }
  }

  try {
    // A replica that knows the end mark gets it through the socket, and no file is written.
    for (const option of ["capa eof", "rdb-only 1"]) {
      socket.write(`REPLCONF ${option}\r\n`);
      await readAnswer();
    }
    socket.write("SYNC\r\n");
    // `<bytes>`, or `EOF:<mark>` where Redis does not know how many there will be.
    const head = await readAnswer();
    const mark = /^EOF:(.{40})$/.exec(head)?.[1];
    const pieces = mark === undefined ? readBytes(Number(head)) : readToMark(Buffer.from(mark));
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
