import { z } from "zod";
import { type ProblemFacts, renderProblem } from "../../../data/problems/render-problem.ts";
import { PROBLEM_KINDS, PROBLEM_SEVERITIES, PROBLEM_STATES } from "../../../event/problem.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";

const kind = z.enum(PROBLEM_KINDS);
const state = z.enum(PROBLEM_STATES);

export const problemSchema = z
  .object({
    id: id("prob"),
    organizationId: id("org"),
    kind,
    state: state.meta({
      description:
        "`opened`: detected. `acknowledged`: marked as known, but not resolved. `resolved`: no longer present.",
    }),
    severity: z.enum(PROBLEM_SEVERITIES).meta({
      description:
        "`error`: events are being rejected, not delivered, or lost. `warning`: this may happen soon.",
    }),
    message: z.string().meta({
      description: "Explanation of the problem, as of the last check.",
      example: "No event arrived for more than 3600 seconds (`expectEverySeconds`).",
    }),
    suggestedAction: z.string().meta({
      description: "Suggested action to resolve the problem.",
      example: "Check that the sender still sends events, and to the channel's current address.",
    }),
    figures: z.record(z.string(), z.number()).meta({
      description: "Values of the last measurement. The names include the units.",
      example: { expectEverySeconds: 3600 },
    }),
    app: z.object({ id: id("app"), uid: z.string(), title: z.string() }).nullable(),
    channel: z.object({ uid: z.string(), title: z.string().nullable() }).nullable(),
    subscription: z.object({ id: id("sub"), eventUid: z.string() }).nullable(),
    connection: z.object({ id: id("con"), name: z.string() }).nullable(),
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
    acknowledgedAt: timestamp.nullable(),
    acknowledgedBy: z.string().nullable().meta({ description: "Id of the account that acknowledged it." }),
    resolvedAt: timestamp.nullable(),
  })
  .meta({
    id: "Problem",
    description:
      "A problem that Inlet has detected in an organization. The app, channel, subscription or connection concerned keeps the name it had at that time, and may have been deleted since. If all four are null, the problem concerns the whole organization.",
  });
export type Problem = Shown<z.output<typeof problemSchema>>;

export const render = (row: ProblemFacts): Problem => renderProblem(row);

export const listQuerySchema = z.object({
  ...pageQuery,
  state: state.optional().describe("Selects problems in this state."),
  kind: kind.optional().describe("Selects problems of this kind."),
  appId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Id of an app. Selects problems that concern it or its channels and subscriptions."),
});

export const problemCheckSchema = z
  .object({
    kind,
    lastCheckedAt: timestamp
      .nullable()
      .meta({ description: "Time of the last check. Null if never checked." }),
    failingSince: timestamp.nullable().meta({
      description:
        "Time since which the checks have been failing. Meanwhile, listed problems may be outdated and new ones missing. Null if the checks work.",
    }),
  })
  .meta({ id: "ProblemCheck", description: "When problems of a kind were last checked." });
