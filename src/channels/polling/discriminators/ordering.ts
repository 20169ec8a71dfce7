import type { RulePath } from "../../../normalize/compile.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import type { TemplateValue } from "../request/template-values.ts";

export type OrderKey = number | bigint | string;

export interface StartClock<K extends OrderKey> {
  readonly at: (ms: number) => K;
  /** Translates a time of Inlet's clock to the server's clock. Returns `undefined` if the response has no usable `Date`. */
  readonly toServerTime: (orderKey: K, page: Page, arrivedAtMs: number) => K | undefined;
  /** Rounds a time down to the precision that the times of the items have. */
  readonly roundDown: (orderKey: K, items: readonly PageItem[]) => K;
  /** Rounds the start down for a request, because the precision of the server's times is not known yet. */
  readonly toRequest: (orderKey: K) => K;
}

/** How a discriminator reads and compares the order keys of items. */
export interface Ordering<K extends OrderKey> {
  /** How to start at the current time. `undefined` if order keys are not times. */
  readonly startClock?: StartClock<K>;
  readonly path: RulePath;
  /** Description of the values that the path must select, for messages. */
  readonly expected: string;
  /** Formats an order key for messages. */
  readonly show: (orderKey: K) => string;
  readonly read: (item: PageItem, nowMs: number) => K | undefined;
  readonly parse: (text: string) => K | undefined;
  /** Returns the lowest order key that late items may have, given the highest order key seen so far. */
  /** Returns the highest order key of items that may be published already. `undefined` if all items may. */
  readonly settledUntil?: (nowMs: number) => K | undefined;
  readonly subtractLookBack: (orderKey: K) => K;
  readonly valueOf: (orderKey: K) => TemplateValue;
  readonly keyOf: (item: PageItem, orderKey: K) => string;
  /** Returns the item key for an order key, or `undefined` if several items can have the same order key. */
  readonly uniqueKeyAt: (orderKey: K) => string | undefined;
}
