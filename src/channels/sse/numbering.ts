import { hash } from "node:crypto";
import type { SseCursor } from "./cursor.ts";

/** The id of an event of the stream, and the id by which it is remembered. */
export interface EventPosition {
  readonly lastEventId: string;
  /** Undefined before the server has given any id. */
  readonly deliveryId: string | undefined;
  readonly cursor: SseCursor;
}

/** As long as an id of an event may be anywhere else. */
const MAX_DELIVERY_ID_CHARS = 512;

/**
 * Counts the events of one connection under the last event id that each comes with (WHATWG HTML, "server-sent events"): the
 * event that brings the id is called by it, those that come after it without an id of their own, or with the same one, `/2`, `/3`
 * and so on.
 *
 * A server that is told `Last-Event-ID: 42` sends what follows the event 42. So the count begins at that event again, and what
 * is sent once more has the name that it had before, whatever the connection before had come to.
 *
 * @param resumeId what the server was told to go on after; empty where nothing was
 */
export class Numbering {
  #lastEventId: string;
  #n: number;
  /** True until an event has brought the id on this connection: one that brings it is the first under it, sent once more. */
  #isResumed = true;

  constructor(resumeId: string) {
    this.#lastEventId = resumeId;
    this.#n = resumeId === "" ? 0 : 1;
  }

  /** The id of a block without data: nothing but the position changes. */
  checkpoint(id: string): SseCursor {
    this.#lastEventId = id;
    this.#n = id === "" ? 0 : 1;
    this.#isResumed = true;
    return { lastEventId: id, n: this.#n };
  }

  /** @param id what the event's own block says; undefined where it says nothing. */
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

/** An id that is too long for an event's is replaced by its hash. */
function formatDeliveryId(lastEventId: string, n: number): string {
  const place = n === 1 ? "" : `/${n}`;
  const isShort = lastEventId.length + place.length <= MAX_DELIVERY_ID_CHARS;
  return `${isShort ? lastEventId : `sha256:${hash("sha256", lastEventId, "base64url")}`}${place}`;
}
