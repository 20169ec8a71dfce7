import { z } from "zod";
import { isMuted, type ProblemFacts, renderProblem } from "../../../data/problems/render-problem.ts";
import { PROBLEM_KINDS, PROBLEM_SEVERITIES, PROBLEM_STATES } from "../../../event/problem.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";

export const problemKind = z.enum(PROBLEM_KINDS);
export const problemState = z.enum(PROBLEM_STATES);

export const problemSchema = z
  .object({
    id: id("prob"),
    organizationId: id("org"),
    kind: problemKind,
    state: problemState.meta({
      description:
        "`opened`: detected. `acknowledged`: marked as known, but not resolved. `resolved`: no longer present.",
    }),
    severity: z.enum(PROBLEM_SEVERITIES).meta({
      description:
        "`error`: events are being rejected, not delivered, or lost. `warning`: this may happen soon.",
    }),
    message: z.string().meta({
      description: "Explanation of the problem, as of the last check.",
      example: "The channel got no event for more than 1 hour (`expectEverySeconds`).",
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
    blueprint: z
      .object({ id: id("bp"), uid: z.string(), title: z.string() })
      .nullable()
      .meta({ description: "The blueprint whose intake is affected." }),
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
    acknowledgedAt: timestamp.nullable(),
    acknowledgedBy: z.string().nullable().meta({ description: "Id of the account that acknowledged it." }),
    mutedUntil: timestamp.nullable().meta({
      description:
        "End of the mute. Until then, the problem does not count as open, but stays listed. Null if the problem is not muted or is resolved. The event of a resolved problem still has it.",
    }),
    mutedBy: z.string().nullable().meta({ description: "Id of the account that muted it." }),
    note: z.string().nullable().meta({
      description: "Note for other people, such as who works on the problem.",
      example: "Ada asks the provider.",
    }),
    notedBy: z.string().nullable().meta({ description: "Id of the account that wrote the note." }),
    resolvedAt: timestamp.nullable(),
  })
  .meta({
    id: "Problem",
    description:
      "A problem that Inlet has detected in an organization. The app, channel, subscription, connection or blueprint concerned keeps the name it had at that time, and may have been deleted since. If all five are null, the problem concerns the whole organization.",
  });
export type Problem = Shown<z.output<typeof problemSchema>>;

export const renderRow = (row: ProblemFacts, nowMs: number): Problem =>
  renderProblem(row, isMuted(row, nowMs));
