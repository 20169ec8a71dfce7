import { z } from "zod";

export const MATCH_KINDS = [
  "app",
  "blueprint",
  "channel",
  "subscription",
  "deadLetter",
  "problem",
  "connection",
  "apiKey",
  "delivery",
  "quarantinedItem",
  "event",
] as const;
export type MatchKind = (typeof MATCH_KINDS)[number];

export const matchSchema = z
  .object({
    kind: z.enum(MATCH_KINDS),
    id: z
      .string()
      .meta({ description: "Id of the entity. For a channel its uid, and for an event its entry id." }),
    appId: z.string().nullable().meta({ description: "Id of its app. Null if it belongs to no app." }),
    title: z
      .string()
      .meta({ description: "Short text for a list of matches, such as a title or an event type." }),
    path: z.string().meta({
      description: "Path of the entity below the API version prefix. `GET` returns the entity.",
      example: "/apps/app_01j9z3k4m5n6p7q8r9s0t1v/deliveries/del_01j9z3k4m5n6p7q8r9s0t1v",
    }),
  })
  .meta({ id: "Match", description: "An entity that has the requested id." });
export type Match = z.output<typeof matchSchema>;

/** Creates a match. `segments` are the segments of its path. */
export const createMatch = (
  kind: MatchKind,
  {
    id,
    appId = null,
    title,
  }: { readonly id: string; readonly appId?: string | null; readonly title: string },
  ...segments: readonly string[]
): Match => ({
  kind,
  id,
  appId,
  title,
  path: segments.map((segment) => `/${encodeURIComponent(segment)}`).join(""),
});
