import type { Writable } from "node:stream";
import { Command } from "ioredis";
import { freeBuffer } from "../../lib/free-buffer.ts";

type Argument = string | Buffer;

/** Shorter texts are joined first: to write one into a buffer costs about as much as to join so many characters. */
const LONG_TEXT = 512;
/** Larger bytes go to the socket as they are: to copy megabytes takes milliseconds of the thread that everybody waits for. */
const MOST_COPIED_BYTES = 64 * 1024;
/** Before each argument its length, of which Redis takes nine digits, and after both a line break. */
const FRAME_BYTES = 1 + 9 + 2 + 2;
/** A character of JavaScript is at most three bytes of UTF-8. */
const MOST_BYTES_PER_CHARACTER = 3;
const LEAST_BUFFER_BYTES = 64 * 1024;
/** A larger buffer is given up: it was a large call's. Of a smaller one only what was written to is really in memory. */
const MOST_KEPT_BYTES = 4 * 1024 * 1024;
/** As many calls as are under way on a connection. */
const MOST_KEPT = 2;

/**
 * Buffers of one connection that commands are written into, again and again: a call of many deliveries is some hundred kilobytes,
 * for which the system would have to clear memory each time.
 */
export class CommandBuffers {
  readonly #spare: Buffer[] = [];

  take(bytes: number): Buffer {
    const spare = this.#spare.pop();
    if (spare !== undefined && spare.length >= bytes) return spare;
    return Buffer.allocUnsafeSlow(Math.max(LEAST_BUFFER_BYTES, 2 ** Math.ceil(Math.log2(bytes))));
  }

  /** To be called once nothing of it is still to be sent. */
  giveBack(buffer: Buffer): void {
    if (this.#spare.length < MOST_KEPT && buffer.length <= MOST_KEPT_BYTES) this.#spare.push(buffer);
    else freeBuffer(buffer);
  }
}

/**
 * A command of ioredis that writes itself (RESP, "Sending commands to a Redis server") into a buffer that is used again. ioredis
 * joins all arguments to one text, which is then measured, copied and encoded: most of what a delivery of some kilobytes costs.
 */
export class SentCommand extends Command {
  #arguments: readonly Argument[];
  readonly #buffers: CommandBuffers;
  #buffer: Buffer | undefined;

  constructor(name: string, args: readonly Argument[], buffers: CommandBuffers) {
    super(name, [], { replyEncoding: "utf8" });
    this.#arguments = args;
    this.#buffers = buffers;
  }

  /**
   * Writes all to the socket but the end, which is answered, to be written next. ioredis asks once, as nothing is sent twice. What was
   * written is let go: a command outlives its answer by some collections of young memory, and the texts of all deliveries grew old with
   * it, to be copied and marked for a tenth of what a delivery costs.
   */
  override toWritable(socket: Writable): Buffer {
    let most = FRAME_BYTES + this.name.length + FRAME_BYTES;
    for (const arg of this.#arguments) {
      const isText = typeof arg === "string";
      most += FRAME_BYTES + (isText ? MOST_BYTES_PER_CHARACTER * arg.length : isCopied(arg) ? arg.length : 0);
    }
    const buffer = this.#buffers.take(most);
    this.#buffer = buffer;
    let from = 0;
    const end = writeCommand(buffer, this.name, this.#arguments, (bytes, at) => {
      socket.write(buffer.subarray(from, at));
      socket.write(bytes);
      from = at;
    });
    this.#arguments = NOTHING;
    return buffer.subarray(from, end);
  }

  /** To be called once Redis has answered: the socket has nothing of it any more. */
  giveBack(): void {
    if (this.#buffer !== undefined) this.#buffers.giveBack(this.#buffer);
    this.#buffer = undefined;
  }
}

const NOTHING: readonly Argument[] = [];

const isCopied = ({ length }: Buffer): boolean => length <= MOST_COPIED_BYTES;

/** Returns where it ends. Large bytes are left out: `leaveOut` is told where they belong. */
function writeCommand(
  buffer: Buffer,
  name: string,
  args: readonly Argument[],
  leaveOut: (bytes: Buffer, at: number) => void,
): number {
  let at = 0;
  // `text` is what is written next: `before`, then the short texts from the argument `first` on.
  let first = 0;
  let before = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`;
  let text = before;
  // To measure a text takes several times as long as to write it, and nearly each has as many bytes as characters: only where one has
  // more, all that are written with it are measured and written again.
  const write = (next: number, frame: string): number => {
    const bytes = buffer.write(text + frame, at);
    if (bytes === text.length + frame.length) return at + bytes;
    let measured = before;
    for (const arg of args.slice(first, next)) measured += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
    return at + buffer.write(measured + frame, at);
  };
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (typeof arg === "string" && arg.length < LONG_TEXT) {
      text += `$${arg.length}\r\n${arg}\r\n`;
      continue;
    }
    const from = write(i, `$${arg.length}\r\n`);
    if (typeof arg !== "string") {
      if (isCopied(arg)) at = from + arg.copy(buffer, from);
      else {
        leaveOut(arg, from);
        at = from;
      }
    } else {
      const length = buffer.write(arg, from);
      if (length === arg.length) at = from + length;
      else {
        at = write(i, `$${length}\r\n`);
        at += buffer.write(arg, at);
      }
    }
    first = i + 1;
    before = "\r\n";
    text = before;
  }
  return write(args.length, "");
}
