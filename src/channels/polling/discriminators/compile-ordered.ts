import { z } from "zod";
import { err, ok } from "../../../lib/result.ts";
import type { PositionContext } from "../cursor/position.ts";
import type { CompiledDiscriminator, DiscriminatorContext } from "./discriminator.ts";
import { createOrderedPosition, type SavedOrdered, savedOrderedSchema } from "./ordered.ts";
import type { Ordering, OrderKey } from "./ordering.ts";

export interface OrderedOptions<K extends OrderKey> extends Pick<DiscriminatorContext, "order" | "startAt"> {
  /** Name of the field that contains the order key in the API form of the position. */
  readonly field: "sequence" | "timestamp";
  readonly mustBe: string;
  /** Parses an order key that a person has written. Defaults to `ordering.parse`. */
  readonly parseStart?: (text: string) => K | undefined;
  /** Returns the first position of a channel that does not start at a value. */
  readonly start: (context: PositionContext) => SavedOrdered;
}

/** Compiles a discriminator whose items are new because their order key is higher. */
export function compileOrdered<K extends OrderKey>(
  ordering: Ordering<K>,
  { field, mustBe, order, parseStart = ordering.parse, start, startAt }: OrderedOptions<K>,
): CompiledDiscriminator {
  const shownSchema = z.strictObject({ [field]: z.union([z.string(), z.int()]) });
  const startFrom = (text: string): SavedOrdered | undefined => {
    const at = parseStart(text);
    return at === undefined ? undefined : { at: String(at), from: String(at) };
  };
  return {
    isOrdered: true,
    start(context) {
      const saved = typeof startAt === "object" ? startFrom(startAt.value) : start(context);
      return createOrderedPosition(ordering, order, saved ?? {}, context);
    },
    restore(saved, context) {
      const read = savedOrderedSchema.safeParse(saved);
      if (!read.success) return undefined;
      // The settings changed how order keys are compared, so the stored position is no longer valid.
      if (read.data.at !== undefined && ordering.parse(read.data.at) === undefined) return undefined;
      return createOrderedPosition(ordering, order, read.data, context);
    },
    parse(value) {
      const read = shownSchema.safeParse(value);
      const position = read.success ? startFrom(String(read.data[field])) : undefined;
      return position === undefined ? err([{ path: field, message: mustBe }]) : ok(position);
    },
  };
}
