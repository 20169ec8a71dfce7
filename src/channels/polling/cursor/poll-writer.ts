import type { SourceEnd, SourceRun } from "../../source.ts";
import { deliveryOf } from "../fetch/delivery.ts";
import type { FetchedPage } from "../fetch/fetch-page.ts";
import type { Validators } from "../fetch/validators.ts";
import type { Plan } from "../settings/plan.ts";
import { type PollCursor, writeCursor } from "./cursor.ts";
import { type Position, positionFull } from "./position.ts";

/** The part of a run that a poll writes by. */
export type PollSink = Pick<SourceRun, "cursor" | "ingest" | "moveTo" | "signal">;

/** Items of one delivery. */
const MAX_ITEMS = 500;

/** `cut`: `maxItemsPerPoll` are published, and there are more. */
export type Published =
  | { readonly kind: "through" | "cut" }
  | { readonly kind: "ended"; readonly end: SourceEnd };

/** Publishes what is new, and moves the cursor with it: each write says exactly what was published up to it. */
export class PollWriter {
  readonly position: Position;
  readonly #plan: Plan;
  readonly #sink: PollSink;
  readonly #nowMs: number;
  #cursor: PollCursor;
  #stored: string | undefined;
  #published = 0;

  constructor(plan: Plan, sink: PollSink, cursor: PollCursor, nowMs: number) {
    this.position = cursor.position;
    this.#plan = plan;
    this.#sink = sink;
    this.#cursor = cursor;
    this.#nowMs = nowMs;
    this.#stored = sink.cursor;
  }

  /** True where the cursor is another one than at the beginning of the poll. */
  get hasMoved(): boolean {
    return this.#stored !== this.#sink.cursor;
  }

  get validators(): Validators | undefined {
    return this.#cursor.validators;
  }

  get lastPollAtMs(): number | undefined {
    return this.#cursor.lastPollAtMs;
  }

  /**
   * Publishes the page's new items.
   *
   * @param endPage called once all of them are added, before the cursor with the last of them is written
   * @throws as `ingest` and `Position` do
   */
  async publish({ arrivedAtMs, page, redact }: FetchedPage, endPage: () => void): Promise<Published> {
    const { itemsPath, settings } = this.#plan;
    const fresh = this.position.select(page);
    for (let done = 0; ; ) {
      const allowed = settings.maxItemsPerPoll - this.#published;
      if (allowed <= 0 && done < fresh.length) return { kind: "cut" };
      const items = fresh.slice(done, done + Math.min(MAX_ITEMS, allowed));
      done += items.length;
      this.position.add(items);
      if (done === fresh.length) endPage();
      if (this.position.room < 0) throw positionFull();
      if (items.length === 0) {
        await this.save();
        return { kind: "through" };
      }
      const delivery = deliveryOf(page, items, { itemsPath, arrivedAtMs, redact });
      if (delivery === undefined) return ended("items_unstable", UNSTABLE);
      const cursor = writeCursor(this.#plan, this.#cursor);
      const result = await this.#sink.ingest(delivery, { cursor, signal: this.#sink.signal });
      if (result.kind !== "accepted")
        return ended("not_accepted", `The items were not accepted: ${result.kind}`);
      this.#stored = cursor;
      this.#published += items.length;
      if (done === fresh.length) return { kind: "through" };
    }
  }

  /** All pages were read: what is known of the first one counts from now on. */
  finish(pages: number, validators: Validators | undefined): void {
    const { discriminator, request, settings } = this.#plan;
    const isAsked = settings.conditional || discriminator.isConditional === true;
    // Of several pages the first may stay as it is while another changes, unless what is new stands on the first.
    const tellsAll = pages === 1 || settings.order === "descending";
    this.position.endWalk(pages);
    this.#cursor = {
      position: this.position,
      validators: isAsked && tellsAll ? validators : undefined,
      lastPollAtMs: request.names.has("lastPollAt") ? this.#nowMs : undefined,
    };
  }

  /** Writes the cursor where it has changed. @throws as `moveTo` does */
  async save(): Promise<void> {
    const cursor = writeCursor(this.#plan, this.#cursor);
    if (cursor === this.#stored) return;
    await this.#sink.moveTo(cursor, { signal: this.#sink.signal });
    this.#stored = cursor;
  }
}

const ended = (code: string, message: string): Published => ({
  kind: "ended",
  end: { kind: "failed", code, message },
});

const UNSTABLE =
  "`itemsPath` finds other items when those are taken out of the page that are not new: it must not go by places or by other items";
