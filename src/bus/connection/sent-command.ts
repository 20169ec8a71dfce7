import type { Writable } from "node:stream";
import { Command } from "ioredis";
import { freeBuffer } from "../../lib/free-buffer.ts";

type Argument = string | Buffer;

/**
 * Maximum length of a short text, in characters. Short texts are joined before writing, because a separate write costs about as
 * much as joining this many characters.
 */
const LONG_TEXT = 512;
/**
 * Maximum size of a buffer that is copied, in bytes. Larger buffers go to the socket directly, because copying them would block the
 * event loop for milliseconds.
 */
const MAX_COPIED_BYTES = 64 * 1024;
/** Maximum number of bytes that RESP adds to an argument: `$`, at most nine digits for the length, and two line breaks. */
const FRAME_BYTES = 1 + 9 + 2 + 2;
/** Maximum number of UTF-8 bytes for one UTF-16 code unit. */
const MAX_BYTES_PER_CHARACTER = 3;
const MIN_BUFFER_BYTES = 64 * 1024;
/**
 * Maximum size of a pooled buffer, in bytes. Larger buffers are freed after use.
 *
 * A pooled buffer occupies physical memory only for the pages that were written.
 */
const MAX_POOLED_BYTES = 4 * 1024 * 1024;
/** Maximum number of pooled buffers. Two are enough, because at most two calls are in flight on a connection. */
const MAX_POOLED_BUFFERS = 2;

/** Reuses command buffers of a connection. Each large new buffer costs time, because the operating system fills it with zeros. */
export class CommandBuffers {
  readonly #spare: Buffer[] = [];

  take(bytes: number): Buffer {
    const spare = this.#spare.pop();
    if (spare !== undefined && spare.length >= bytes) return spare;
    return Buffer.allocUnsafeSlow(Math.max(MIN_BUFFER_BYTES, 2 ** Math.ceil(Math.log2(bytes))));
  }

  /** Returns a buffer to the pool for reuse. Call it only after the socket has sent all bytes of the buffer. */
  giveBack(buffer: Buffer): void {
    if (this.#spare.length < MAX_POOLED_BUFFERS && buffer.length <= MAX_POOLED_BYTES)
      this.#spare.push(buffer);
    else freeBuffer(buffer);
  }
}

/**
 * An ioredis command that encodes itself into a reusable buffer (RESP, "Sending commands to a Redis server"). Without this class, ioredis
 * would join all arguments into one string, then measure, copy and encode it. That used to be most of the cost of a delivery of a few
 * kilobytes.
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
   * Writes the command to the socket except for its last part, which it returns for ioredis to write. ioredis calls this method only once,
   * because commands are never resent.
   *
   * Drops the arguments afterwards, because the command object outlives its reply. V8 would otherwise promote the delivery texts to the old
   * generation, which adds about 10 % to the cost of a delivery.
   */
  override toWritable(socket: Writable): Buffer {
    let most = FRAME_BYTES + this.name.length + FRAME_BYTES;
    for (const arg of this.#arguments) {
      const isText = typeof arg === "string";
      most += FRAME_BYTES + (isText ? MAX_BYTES_PER_CHARACTER * arg.length : isCopied(arg) ? arg.length : 0);
    }
    const buffer = this.#buffers.take(most);
    this.#buffer = buffer;
    let from = 0;
    const end = writeCommand(buffer, this.name, this.#arguments, (bytes, at) => {
      socket.write(buffer.subarray(from, at));
      socket.write(bytes);
      from = at;
    });
    this.#arguments = NO_ARGUMENTS;
    return buffer.subarray(from, end);
  }

  /**
   * Returns the buffer to the pool. Call it only after Redis has replied, because the socket may still be sending the buffer until
   * then.
   */
  giveBack(): void {
    if (this.#buffer !== undefined) this.#buffers.giveBack(this.#buffer);
    this.#buffer = undefined;
  }
}

const NO_ARGUMENTS: readonly Argument[] = [];

const isCopied = ({ length }: Buffer): boolean => length <= MAX_COPIED_BYTES;

/**
 * Encodes a command into `buffer` and returns the end offset. Large binary arguments are not copied, but passed to `onLargeBytes`
 * with their offset.
 */
function writeCommand(
  buffer: Buffer,
  name: string,
  args: readonly Argument[],
  onLargeBytes: (bytes: Buffer, at: number) => void,
): number {
  let at = 0;
  // Text that is not yet written: `before`, and the short arguments from index `first` on.
  let first = 0;
  let before = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`;
  let text = before;
  // Assumes that all characters are ASCII, because measuring a text takes several times longer than writing it. If the assumption was
  // wrong, the texts are measured and written again.
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
        onLargeBytes(arg, from);
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
