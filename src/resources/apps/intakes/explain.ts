import { z } from "zod";
import { routingSchema } from "../../../event/intake.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { compileRoutes } from "../../../normalize/routes.ts";
import { explainedPathSchema, MAX_EXPLAINED_ITEMS } from "../../events/explained-item.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { getCompiledChannel } from "../app-channel.ts";
import { getIntake } from "../intake-scope.ts";
import { explainedDelivery, verificationSchema, verifyGiven } from "../verify-given.ts";

const explainSchema = z.strictObject({
  ...explainedDelivery,
  routeBy: routingSchema.shape.routeBy
    .optional()
    .describe("Paths to try instead of the intake's `routeBy`. The intake is not changed."),
});

const routedItemSchema = z
  .object({
    item: z
      .int()
      .nullable()
      .meta({ description: "Index of the item, from 0. Null for the delivery as a whole." }),
    routeKey: z.string().nullable().meta({ description: "Null if no path yields a route key." }),
    path: z.string().nullable().meta({ description: "The path that yields the route key." }),
    paths: z
      .array(explainedPathSchema)
      .meta({ description: "Every path of `routeBy` with the values that it yields in this item." }),
    result: z.enum(["routed", ...QUARANTINE_REASONS]).meta({
      description: "`routed`, or the reason for which the intake would hold the item.",
    }),
    detail: z.string().nullable(),
    appId: id("app").nullable().meta({ description: "The install that owns the route key." }),
  })
  .meta({ id: "RoutedItem", description: "Predicted route of an item, with the reason." });

const explanationSchema = z
  .object({
    verification: verificationSchema,
    isPaused: z.boolean().meta({
      description: "Whether the intake is paused. If so, it buffers the delivery and routes it later.",
    }),
    received: z.int().meta({
      description: `Number of items. Only the first ${MAX_EXPLAINED_ITEMS} are listed in \`items\`.`,
    }),
    items: z.array(routedItemSchema),
  })
  .meta({
    id: "IntakeExplanation",
    description: "How an intake would route a delivery, without writing it.",
  });

export type IntakeExplanation = Shown<z.output<typeof explanationSchema>>;

export const intakeExplanations: Resource = {
  tag: "Blueprints",
  params: { blueprintId: pathId("bp", "blueprint") },
  routes: (deps) => [
    defineRoute({
      at: "POST /blueprints/:blueprintId/intake/explain",
      operation: "explainIntake",
      summary: "Explain how an intake would route a delivery",
      description:
        "Verifies the delivery and routes its items like received ones, without publishing, storing or counting them. Shows the route key of each item, the values of each path, and the install that owns the key. The definitions and data of installs are not visible. Use `routeBy` to try other paths.",
      permission: "blueprints.read",
      body: explainSchema,
      answer: explanationSchema,
      missing: "the organization has no such blueprint, or the blueprint has no intake",
      async handle({ caller, params, body }) {
        const { intake } = await getIntake(deps.db, caller, params.blueprintId);
        const channel = await getCompiledChannel(deps, intake.number);
        if (channel.routes === undefined) throw new Error("an intake has no routing");
        const paths = body.routeBy && compileRoutes(channel.rules.profile, channel.config, body.routeBy);
        if (paths?.ok === false) throw invalidParameters(paths.error);
        const { verification, delivery } = await verifyGiven(deps, channel, body);
        const isPaused = channel.state === "paused";
        if (delivery === undefined) return { verification, isPaused, received: 0, items: [] };
        const routes = paths === undefined ? channel.routes : { ...channel.routes, paths: paths.value };
        const { received, items } = await deps.explainRouting(channel, routes, delivery, MAX_EXPLAINED_ITEMS);
        const redact = channel.sender.createRedactor(delivery);
        return { verification, isPaused, received, items: redactTexts(items, redact) };
      },
    }),
  ],
};
