import { z } from "zod";
import { integer, pathText } from "../../../event/setting-fields.ts";
import { err, ok } from "../../../lib/result.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import type { StartAt } from "../settings/start-at.ts";
import { parseTimestamp, TIMESTAMP_FORMATS, type TimestampFormat } from "../settings/timestamps.ts";
import type { Discriminator } from "./discriminator.ts";
import { createOrderedPosition, type Ordering, type SavedOrdered, savedOrderedSchema } from "./ordered.ts";

const settings = z.strictObject({
  by: z
    .literal("timestamp")
    .describe(
      "New is what is as late as the latest item or later. Items of one instant are told apart by `itemId`, so the server must be asked for all from {{cursor}} on, itself included.",
    ),
  path: pathText.describe("A path over an item that yields when it happened or was changed."),
  format: z
    .enum(TIMESTAMP_FORMATS)
    .default("iso")
    .describe("How it is written, by the items and for the server alike."),
  lookBackSeconds: integer(0, 604_800, 0).describe(
    "For servers that show an item late: so far behind the newest, items that were not seen yet are taken as well. {{cursor}} begins there. It should be longer than items are late, and a poll takes.",
  ),
});

/** Later timestamps are treated as server errors. Otherwise no later item would ever count as new. */
const MAX_AHEAD_MS = 86_400_000;

/** Detects new items by the latest time seen so far. */
export const timestamp: Discriminator<typeof settings> = {
  settings,
  cursorKind: () => "instant",
  create(settings, { paths, itemKey, order, startAt }) {
    const { format, lookBackSeconds } = settings;
    const path = paths.ofItem(settings.path, "discriminator.path");
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
      refuse("startAt.value", "is no instant");
  },
};

/** Returns `undefined` if the text is not a timestamp. */
const parseStart = (text: string, format: TimestampFormat): number | undefined =>
  parseTimestamp(text, "iso") ?? parseTimestamp(text, format);

const shownSchema = z.strictObject({ timestamp: z.string() });

const MUST_BE = "must be an instant, such as 2026-01-31T09:30:00Z, or as `format` has it";

function startMs(startAt: StartAt, startedAtMs: number, format: TimestampFormat): number | undefined {
  if (startAt === "now") return startedAtMs;
  return startAt === "earliest" ? 0 : parseStart(startAt.value, format);
}
