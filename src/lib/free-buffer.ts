/** Smaller ones may share their memory with others, and are collected for little. A socket reads twice as much at once. */
const LEAST_BYTES = Math.max(32 * 1024, Buffer.poolSize / 2);

/**
 * Gives the memory of a large buffer back at once; it is empty from then on. Left to the garbage collector, 64 MiB of such memory make V8
 * look through the whole heap, on the thread that everybody waits for.
 *
 * The caller is the last that looks at it, its memory holds nothing else, and no native call is at work on it: a socket that writes it reads
 * the memory without asking.
 */
export function freeBuffer({ buffer: memory, byteLength }: Uint8Array): void {
  if (byteLength < LEAST_BYTES || !(memory instanceof ArrayBuffer) || memory.detached) return;
  memory.transfer(0);
}
