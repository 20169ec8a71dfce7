import type { OutgoingEvent } from "../../event/event.ts";
import type { Normalized } from "../../normalize/normalize.ts";

/** Minimum length of event data that is transferred as a buffer, in characters. Copying shorter data is just as fast. */
const MIN_CHARACTERS = 128 * 1024;

/**
 * Replaces large strings in a result with buffers, which can be transferred to another thread without a copy. Returns the new result and
 * the buffers.
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

/** Restores `Buffer` objects, because a transfer between threads turns them into `Uint8Array` objects. */
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
