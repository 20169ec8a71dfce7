import { hash } from "node:crypto";
import type { SseCursor } from "./cursor.ts";

export interface EventPosition {
  readonly lastEventId: string;
  /** `undefined` until the server has sent an event id. */
  readonly deliveryId: string | undefined;
  readonly cursor: SseCursor;
}

/** Maximum length of a delivery id, which is the limit of all event ids. */
const MAX_DELIVERY_ID_CHARS = 512;

/**
 * Derives delivery ids from the event ids of one connection (WHATWG HTML, "server-sent events"). The event that carries an id gets that id
 * as its delivery id. Later events with the same id, or without an id, get `/2`, `/3` and so on appended.
 * A server that receives `Last-Event-ID: 42` sends all events after 42 again. The count also restarts at that event, so an event gets the
 * same delivery id when it is sent again.
 * @param resumeId the last event id sent to the server; empty if none was sent
 */
export class Numbering {
  #lastEventId: string;
  #n: number;
  /**
   * True until an event carries the resume id on this connection. Such an event was sent again, so it counts as the first event with this
   * id.
   */
  #isResumed = true;

  constructor(resumeId: string) {
    this.#lastEventId = resumeId;
    this.#n = resumeId === "" ? 0 : 1;
  }

  /** Handles lines that set an id but have no data. */
  checkpoint(id: string): SseCursor {
    this.#lastEventId = id;
    this.#n = id === "" ? 0 : 1;
    this.#isResumed = true;
    return { lastEventId: id, n: this.#n };
  }

  /** @param id the id that this event sets; `undefined` if it sets none */
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

/** Appends the counter to the event id. If the id is too long for a delivery id, its hash is used instead. */
function formatDeliveryId(lastEventId: string, n: number): string {
  const place = n === 1 ? "" : `/${n}`;
  const isShort = lastEventId.length + place.length <= MAX_DELIVERY_ID_CHARS;
  return `${isShort ? lastEventId : `sha256:${hash("sha256", lastEventId, "base64url")}`}${place}`;
}
