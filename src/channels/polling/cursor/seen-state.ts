import { z } from "zod";
import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { SeenKeys, seenKeysSchema } from "./seen-keys.ts";

/** A position that is remembered keys, as it is saved. */
export const savedSeenSchema = z.strictObject({
  keys: seenKeysSchema.default([]),
  /** True until the first poll has noted all that is there, and published none of it. */
  isPriming: z.boolean().default(false),
});
export type SavedSeen = z.input<typeof savedSeenSchema>;

const shownSchema = z.strictObject({ seen: z.enum(["all", "none"]) });

/** The number of keys, or `all`: keys are hashes of items that are not known any more. */
export function showSeen(saved: unknown): { readonly seen: number | "all" } {
  const { isPriming, keys } = savedSeenSchema.parse(saved);
  return { seen: isPriming ? "all" : SeenKeys.read(keys, Number).size };
}

/** `all` or `none`, as a person sets it. @param mustBe what each of them means, for the finding */
export function parseSeen(value: unknown, mustBe: string): Result<SavedSeen, readonly Finding[]> {
  const read = shownSchema.safeParse(value);
  return read.success
    ? ok({ isPriming: read.data.seen === "all" })
    : err([{ path: "seen", message: mustBe }]);
}

export function writeSeen(keys: SeenKeys<number>, isPriming: boolean): SavedSeen {
  const written = keys.write();
  return { ...(written.length > 0 && { keys: written }), ...(isPriming && { isPriming }) };
}
