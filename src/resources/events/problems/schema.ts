import { z } from "zod";
import { type ProblemFacts, renderProblem } from "../../../data/problems/render-problem.ts";
import { PROBLEM_KINDS, PROBLEM_SEVERITIES, PROBLEM_STATES } from "../../../event/problem.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";

const kind = z.enum(PROBLEM_KINDS);
const state = z.enum(PROBLEM_STATES);

/** A problem as the API answers it. */
export const problemSchema = z
  .object({
    id: id("prob"),
    organizationId: id("org"),
    kind,
    state: state.meta({
      description:
        "`opened`, until somebody says that they know of it (`acknowledged`); `resolved`: it is over.",
    }),
    severity: z.enum(PROBLEM_SEVERITIES).meta({
      description: "`error`: events are refused, not delivered, or lost. `warning`: that may come.",
    }),
    message: z.string().meta({
      description: "What is wrong, as it was seen last.",
      example: "No event came for more than 3600 seconds, its `expectEverySeconds`.",
    }),
    cure: z.string().meta({
      description: "What to do about it.",
      example: "Look whether its sender still sends, and to the present address.",
    }),
    figures: z.record(z.string(), z.number()).meta({
      description: "What was measured last; its names carry their units.",
      example: { expectEverySeconds: 3600 },
    }),
    app: z.object({ id: id("app"), uid: z.string(), title: z.string() }).nullable(),
    channel: z.object({ uid: z.string(), title: z.string().nullable() }).nullable(),
    subscription: z.object({ id: id("sub"), eventUid: z.string() }).nullable(),
    connection: z.object({ id: id("con"), name: z.string() }).nullable(),
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
    acknowledgedAt: timestamp.nullable(),
    acknowledgedBy: z.string().nullable().meta({ description: "The account that has." }),
    resolvedAt: timestamp.nullable(),
  })
  .meta({
    id: "Problem",
    description:
      "Something that is wrong with what the organization has. It names what it is about as it was called then, be it there any more or not; without an app, channel, subscription or connection it is about the organization as a whole.",
  });
export type Problem = Shown<z.output<typeof problemSchema>>;

export const render = (row: ProblemFacts): Problem => renderProblem(row);

export const listQuerySchema = z.object({
  ...pageQuery,
  state: state.optional().describe("Those in that state alone."),
  kind: kind.optional().describe("Those of that kind alone."),
  appId: z.string().min(1).max(255).optional().describe("Those about something of that app alone."),
});

export const looksSchema = z
  .object({
    kind,
    lookedAt: timestamp.nullable().meta({ description: "When it was last looked for; null: never yet." }),
    failingSince: timestamp.nullable().meta({
      description:
        "Since when it cannot be looked for: what is open may be over, and there may be more. Null: it can.",
    }),
  })
  .meta({ id: "ProblemLook", description: "How current what is known about a kind of problem is." });
