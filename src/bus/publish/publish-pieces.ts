import type { OutgoingEvent } from "../../event/event.ts";
import { slotOf } from "../keys.ts";
import { MAX_CALL_BYTES, MAX_CALL_EVENTS } from "./publish-lanes.ts";

export interface Piece {
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

/**
 * Cuts events into pieces that fit one script call each, in order; one that is larger than a call is its own
 * piece.
 */
export function cutEvents(events: readonly OutgoingEvent[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let piece: OutgoingEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    if (piece.length === MAX_CALL_EVENTS || (piece.length > 0 && bytes + event.bytes > MAX_CALL_BYTES)) {
      pieces.push({ events: piece, bytes });
      piece = [];
      bytes = 0;
    }
    piece.push(event);
    bytes += event.bytes;
  }
  if (piece.length > 0) pieces.push({ events: piece, bytes });
  return pieces;
}

export interface SlotEvents {
  readonly slot: number;
  /** Where each event stood among all. */
  readonly places: number[];
  readonly events: OutgoingEvent[];
}

/** Parts events by the slot of their topic, each slot's in order. */
export function partBySlot(events: readonly OutgoingEvent[]): readonly SlotEvents[] {
  const bySlot = new Map<number, SlotEvents>();
  const slots = new Map<string, number>();
  events.forEach((event, place) => {
    let slot = slots.get(event.topic);
    if (slot === undefined) {
      slot = slotOf(event.topic);
      slots.set(event.topic, slot);
    }
    let part = bySlot.get(slot);
    if (part === undefined) {
      part = { slot, places: [], events: [] };
      bySlot.set(slot, part);
    }
    part.places.push(place);
    part.events.push(event);
  });
  return [...bySlot.values()];
}
