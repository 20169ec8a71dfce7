import { hash } from "node:crypto";
import type { SseCursor } from "./cursor.ts";

/** The last event id of an event, and the delivery id derived from it. */
export interface EventPosition {
  readonly lastEventId: string;
  /** `undefined` until the server has sent an id. */
  readonly deliveryId: string | undefined;
  readonly cursor: SseCursor;
}

/** Same limit as for event ids elsewhere. */
const MAX_DELIVERY_ID_CHARS = 512;

/**
 * Derives delivery ids from the last event ids of one connection (WHATWG HTML, "server-sent events"). The event that carries an id gets
 * that id. Later events with the same id, or without one, get `/2`, `/3` and so on appended.
 * A server that receives `Last-Event-ID: 42` resends the events after 42. The count restarts at that event, so a resent event gets the same
 * delivery id as before.
 * @param resumeId the last event id sent to the server; empty if none was sent
 */
export class Numbering {
  #lastEventId: string;
  #n: number;
  /** True until an event carries the resume id on this connection. That event was resent, so it counts as the first with this id. */
  #isResumed = true;

  constructor(resumeId: string) {
    this.#lastEventId = resumeId;
    this.#n = resumeId === "" ? 0 : 1;
  }

  /** Handles a block that sets an id but has no data. Only the position changes. */
  checkpoint(id: string): SseCursor {
    this.#lastEventId = id;
    this.#n = id === "" ? 0 : 1;
    this.#isResumed = true;
    return { lastEventId: id, n: this.#n };
  }

  /** @param id the id in the event's own block; `undefined` when it has none */
  next(id: string | undefined): EventPosition {
    if (id !== undefined && (id !== this.#lastEventId || this.#isResumed)) {
      this.#lastEventId = id;
      this.#n = 0;
      this.#isResumed = false;
    }
    const lastEventId = this.#lastEventId;
    if (lastEventId === "")
      return { lastEventId, deliveryId: undefined, cursor: { lastEventId, n: this.#n } };
    const n = ++this.#n;
    return { lastEventId, deliveryId: formatDeliveryId(lastEventId, n), cursor: { lastEventId, n } };
  }
}

/** Appends the counter. An id that is too long for a delivery id is replaced by its hash. */
function formatDeliveryId(lastEventId: string, n: number): string {
  const place = n === 1 ? "" : `/${n}`;
  const isShort = lastEventId.length + place.length <= MAX_DELIVERY_ID_CHARS;
  return `${isShort ? lastEventId : `sha256:${hash("sha256", lastEventId, "base64url")}`}${place}`;
}
