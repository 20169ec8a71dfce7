import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import { err, ok } from "../../../lib/result.ts";
import type { StartAt } from "../config/start-at.ts";
import { parseTimestamp, TIMESTAMP_FORMATS, type TimestampFormat } from "../config/timestamps.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import type { Discriminator } from "./discriminator.ts";
import { createOrderedPosition, type Ordering, type SavedOrdered, savedOrderedSchema } from "./ordered.ts";

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
  create(config, { paths, itemKey, order, startAt }) {
    const { format, lookBackSeconds } = config;
    const path = paths.ofItem(config.path, "discriminator.path");
    if (path === undefined) return undefined;
    const ordering: Ordering<number> = {
      read(item, nowMs) {
        const text = item.read(path);
        const ms = text === undefined ? undefined : parseTimestamp(text, format);
        return ms === undefined || ms > nowMs + MAX_AHEAD_MS ? undefined : ms;
      },
      parse: (text) => parseTimestamp(text, "epochMillis"),
      subtractLookBack: (ms) => ms - lookBackSeconds * 1000,
      valueOf: (ms) => ({ kind: "instant", ms, format }),
      keyOf: (item, ms) => keyOf([String(ms), itemKey(item)]),
      uniqueKeyAt: () => undefined,
    };
    return {
      isOrdered: true,
      start(context) {
        const at = String(startMs(startAt, context.startedAtMs, format) ?? 0);
        return createOrderedPosition(ordering, order, { at, from: at }, context);
      },
      restore(saved, context) {
        const read = savedOrderedSchema.safeParse(saved);
        return read.success ? createOrderedPosition(ordering, order, read.data, context) : undefined;
      },
      parse(value) {
        const read = shownSchema.safeParse(value);
        const ms = read.success ? parseStart(read.data.timestamp, format) : undefined;
        if (ms === undefined) return err([{ path: "timestamp", message: MUST_BE }]);
        const position: SavedOrdered = { at: String(ms), from: String(ms) };
        return ok(position);
      },
    };
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

const shownSchema = z.strictObject({ timestamp: z.string() });

const MUST_BE = "must be a timestamp, either like 2026-01-31T09:30:00Z or in the format set by `format`";

function startMs(startAt: StartAt, startedAtMs: number, format: TimestampFormat): number | undefined {
  if (startAt === "now") return startedAtMs;
  return startAt === "earliest" ? 0 : parseStart(startAt.value, format);
}
