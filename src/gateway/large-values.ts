import type { OutgoingEvent } from "../event/event.ts";
import type { Normalized } from "../normalize/normalize.ts";

/** Of fewer characters a copy is no more work than memory of its own. */
const MIN_CHARACTERS = 128 * 1024;

/**
 * What a thread has normalized, with the large values as bytes, and their memory, which can be moved to another thread. As text they
 * would be copied there, and be garbage for which V8 looks through all of its heap.
 */
export function withLargeValues(normalized: Normalized): readonly [Normalized, readonly ArrayBuffer[]] {
  if (normalized.kind !== "normalized") return [normalized, []];
  const moved: ArrayBuffer[] = [];
  const events = normalized.events.map((event): OutgoingEvent => {
    const at = event.fields.findIndex((name, i) => i % 2 === 0 && DATA_NAMES.has(name)) + 1;
    const value = at === 0 ? "" : (event.fields[at] ?? "");
    if (value.length < MIN_CHARACTERS) return event;
    const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(value));
    bytes.write(value);
    moved.push(bytes.buffer);
    return { ...event, fields: event.fields.with(at, ""), large: { at, bytes } };
  });
  return [{ ...normalized, events }, moved];
}

/** What came from another thread, where buffers arrive as plain arrays of bytes, with its large values as buffers again. */
export function withBuffers(normalized: Normalized): Normalized {
  if (normalized.kind !== "normalized") return normalized;
  const events = normalized.events.map((event): OutgoingEvent => {
    if (event.large === undefined) return event;
    const { at, bytes } = event.large;
    return { ...event, large: { at, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) } };
  });
  return { ...normalized, events };
}

const DATA_NAMES = new Set(["data", "data_base64"]);
