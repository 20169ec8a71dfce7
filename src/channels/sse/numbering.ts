import { hash } from "node:crypto";
import type { SseCursor } from "./cursor.ts";

export interface EventPosition {
  readonly lastEventId: string;
  /** `undefined` until the server has sent an event id. */
  readonly deliveryId: string | undefined;
  readonly cursor: SseCursor;
}

/** Maximum length of a delivery id, in characters. It is the limit of all event ids. */
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
  /** True until the server repeats the event with the resume id. That event then counts as the first event with this id. */
  #isResumed = true;

  constructor(resumeId: string) {
    this.#lastEventId = resumeId;
    this.#n = resumeId === "" ? 0 : 1;
  }

  /** Handles an event id that arrived without data. */
  checkpoint(id: string): SseCursor {
    this.#lastEventId = id;
    this.#n = id === "" ? 0 : 1;
    this.#isResumed = true;
    return { lastEventId: id, n: this.#n };
  }

  /** @param id the id that arrived with the event; `undefined` if none arrived */
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

/** Combines an event id with a counter. If the result is too long, uses a hash of the event id instead. */
function formatDeliveryId(lastEventId: string, n: number): string {
  const place = n === 1 ? "" : `/${n}`;
  const isShort = lastEventId.length + place.length <= MAX_DELIVERY_ID_CHARS;
  return `${isShort ? lastEventId : `sha256:${hash("sha256", lastEventId, "base64url")}`}${place}`;
}
