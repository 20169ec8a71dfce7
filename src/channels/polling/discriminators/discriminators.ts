import { z } from "zod";
import type { Discriminator } from "./discriminator.ts";
import { etag } from "./etag.ts";
import { seenSet } from "./seen-set.ts";
import { sequence } from "./sequence.ts";
import { timestamp } from "./timestamp.ts";
import { token } from "./token.ts";

const [first, ...others] = [timestamp, sequence, seenSet, token, etag] as const;

export const discriminatorSchema = z
  .discriminatedUnion("by", [first.configSchema, ...others.map(({ configSchema }) => configSchema)])
  .describe("How the channel detects new items. Required without `preset`.");

export const DISCRIMINATORS: ReadonlyMap<string, Discriminator> = new Map(
  [first, ...others].map((one: Discriminator) => [one.configSchema.shape.by.value, one]),
);

/** @throws Error when no strategy for detecting new items has this name */
export function getDiscriminator(by: string): Discriminator {
  const found = DISCRIMINATORS.get(by);
  if (found === undefined) throw new Error(`unknown discriminator ${by}`);
  return found;
}
