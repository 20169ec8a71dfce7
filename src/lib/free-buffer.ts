/**
 * Minimum size in bytes of a buffer whose memory is released explicitly. Smaller buffers may share pooled memory, and are cheap to collect.
 * The buffers of socket reads have twice this size.
 */
const MIN_BYTES = Math.max(32 * 1024, Buffer.poolSize / 2);

/**
 * Releases the memory of a large buffer immediately and leaves the buffer empty. Otherwise, every 64 MiB of such memory would make
 * V8 scan the whole heap on the main thread.
 *
 * The caller must be the last user of the buffer, and its memory must contain no other data. No native call may still use the
 * memory. A socket write, for example, would read the released memory without checking.
 */
export function freeBuffer({ buffer: memory, byteLength }: Uint8Array): void {
  if (byteLength < MIN_BYTES || !(memory instanceof ArrayBuffer) || memory.detached) return;
  memory.transfer(0);
}
