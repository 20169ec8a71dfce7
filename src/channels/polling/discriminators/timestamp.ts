import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import { parseTimestamp, TIMESTAMP_FORMATS, type TimestampFormat } from "../../../lib/timestamps.ts";
import { findServerTimeMs } from "../../../net/retry-after.ts";
import { roundDownLike } from "../config/timestamps.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import { compileOrdered } from "./compile-ordered.ts";
import type { Discriminator } from "./discriminator.ts";
import { savedOrderedSchema } from "./ordered.ts";
import type { Ordering } from "./ordering.ts";

const configSchema = z.strictObject({
  by: z
    .literal("timestamp")
    .describe(
      "Items are new if their timestamp is later than the latest one seen. Items with that same timestamp are new if their `itemId` is unknown, so the request must return all items from {{cursor}} on, inclusive.",
    ),
  path: pathText.describe("Path to the time when an item was created or changed."),
  format: z
    .enum(TIMESTAMP_FORMATS)
    .default("iso")
    .describe("Format of the items' timestamps, also used for {{cursor}}."),
  lookBackSeconds: integer(0, 604_800, 0).describe(
    "For servers that return items with a delay. Unseen items up to this many seconds older than the newest one also count as new, and {{cursor}} is moved back by this time. Choose a value above that delay plus the duration of a poll.",
  ),
});

/** Maximum time that a timestamp may lie in the future. A timestamp beyond it is a server error and would make all later items look old. */
const MAX_AHEAD_MS = 86_400_000;

export const timestamp: Discriminator<typeof configSchema> = {
  configSchema,
  cursorKind: () => "instant",
  create(config, { paths, itemKey, order, settleMs, startAt }) {
    const { format, lookBackSeconds } = config;
    const path = paths.ofItem(config.path, "discriminator.path");
    if (path === undefined) return undefined;
    const ordering: Ordering<number> = {
      path,
      expected: `a time in the format ${format} that is at most a day in the future`,
      show: (ms) => new Date(ms).toISOString(),
      read(item, nowMs) {
        const text = item.read(path);
        const ms = text === undefined ? undefined : parseTimestamp(text, format);
        return ms === undefined || ms > nowMs + MAX_AHEAD_MS ? undefined : ms;
      },
      parse: (text) => parseTimestamp(text, "epochMillis"),
      settledUntil: (nowMs) => (settleMs > 0 ? nowMs - settleMs : undefined),
      subtractLookBack: (ms) => ms - lookBackSeconds * 1000,
      valueOf: (ms) => ({ kind: "instant", ms, format }),
      keyOf: (item, ms) => keyOf([String(ms), itemKey(item)]),
      uniqueKeyAt: () => undefined,
      startClock: {
        at: (ms) => ms,
        toServerTime(ms, { headers }, arrivedAtMs) {
          const serverMs = findServerTimeMs(headers);
          if (serverMs === undefined || Math.abs(serverMs - arrivedAtMs) > MAX_AHEAD_MS) return undefined;
          return ms + serverMs - arrivedAtMs;
        },
        roundDown: (ms, items) =>
          roundDownLike(
            ms,
            items.flatMap((item) => item.read(path) ?? []),
            format,
          ),
        toRequest: (ms) => ms - (ms % 60_000),
      },
    };
    const compiled = compileOrdered(ordering, {
      order,
      startAt,
      field: "timestamp",
      mustBe: MUST_BE,
      parseStart: (text) => parseStart(text, format),
      start({ startedAtMs }) {
        const at = String(startAt === "now" ? startedAtMs : 0);
        return { at, from: at, ...(startAt === "now" && { start: "local" }) };
      },
    });
    return { ...compiled, timeOf: ordering.read };
  },
  show(saved) {
    const { at } = savedOrderedSchema.parse(saved);
    return { timestamp: at === undefined ? null : new Date(Number(at)).toISOString() };
  },
  check({ format }, { startValue }, refuse) {
    if (startValue !== undefined && parseStart(startValue, format) === undefined)
      refuse("startAt.value", "is not a valid timestamp");
  },
};

const parseStart = (text: string, format: TimestampFormat): number | undefined =>
  parseTimestamp(text, "iso") ?? parseTimestamp(text, format);

const MUST_BE = "must be a timestamp, either like 2026-01-31T09:30:00Z or in the format set by `format`";
