import { z } from "zod";
import { createIssueReporter, type ReportIssue } from "../../../event/config-fields.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { ENDINGS } from "../pagination/schema.ts";
import { isComplete, type PollingConfig, pollingObject } from "./config-shape.ts";
import { compilePlan, type Plan } from "./plan.ts";
import { expandPreset } from "./preset-stream.ts";
import { checkReconcile } from "./reconcile.ts";

/** Settings of a polling channel. Also rejects settings that are only invalid in combination. */
const completeSchema = pollingObject
  .superRefine((config, context) => {
    const refuse = createIssueReporter(context);
    if (config.preset === undefined && config.stream !== undefined) refuse("stream", "requires `preset`");
    if (config.preset === undefined && config.params !== undefined) refuse("params", "requires `preset`");
    for (const name of ["request", "discriminator"] as const)
      if (config[name] === undefined) refuse(name, "is required without `preset`");
    if (!isComplete(config)) return;
    const plan = compilePlan(config);
    if (plan.ok) checkPlan(plan.value, refuse);
    else for (const { path, message } of plan.error) refuse(path, message);
  })
  .describe("Inlet calls a URL on a schedule and publishes the new items.");

export const pollingConfigSchema = z.preprocess(expandPreset, completeSchema) as z.ZodType<
  PollingConfig,
  z.input<typeof pollingObject>
>;

/** Rejects combinations of fields that would lose items, duplicate items or have no effect. */
function checkPlan(plan: Plan, refuse: ReportIssue): void {
  const { request, config } = plan;
  const { conditional, decode, discriminator, itemsPath, order, pagination, retry, startAt, successOn } =
    config;
  const { body, method } = config.request;
  const isAlways = plan.discriminator.isConditional === true;
  const isConditional = conditional || isAlways;
  const changes = ["now", "lastPollAt"].find((name) => request.names.has(name));
  if (body !== undefined && method === "GET")
    refuse("request.body", "is not allowed with GET; set `method` to POST");
  if (isConditional && method === "POST")
    refuse(isAlways ? "request.method" : "conditional", "conditional requests must use GET");
  if (isConditional && changes !== undefined)
    refuse(
      isAlways ? "request" : "conditional",
      `conditional requests must not contain {{${changes}}}, because it changes every request`,
    );
  if ((successOn.path === undefined) !== (successOn.equals === undefined))
    refuse("successOn.path", "must be set together with `equals`");
  if (decode === "ndjson" && itemsPath !== undefined)
    refuse("itemsPath", "is not allowed when `decode` is ndjson, because each line is an item");
  if (pagination !== undefined) checkPagination(plan, pagination, refuse);
  if (retry.maxMs < retry.initialMs) refuse("retry.maxMs", "must not be less than `initialMs`");
  const startValue = typeof startAt === "object" ? startAt.value : undefined;
  const rest = { startValue, order, isPaged: pagination !== undefined, placeholders: request.names };
  checkReconcile(config, discriminator.by, refuse);
  getDiscriminator(discriminator.by).check(discriminator, rest, refuse);
}

function checkPagination(
  { discriminator, request, restartsWalk, config }: Plan,
  pagination: NonNullable<Plan["config"]["pagination"]>,
  refuse: ReportIssue,
): void {
  const { by } = pagination;
  const isNamed = request.names.has("page");
  const endings = ENDINGS.filter((name) => name in pagination && pagination[name as never] !== undefined);
  if (endings.length > 1)
    refuse(
      `pagination.${endings[1]}`,
      `is not allowed together with \`${endings[0]}\`; set only one of them`,
    );
  if (by === "cursorToken") {
    if (!isNamed && pagination.name === undefined) refuse("pagination.name", NO_PLACE);
    if (pagination.in === "body" && typeof config.request.body !== "object")
      refuse("pagination.in", "requires `request.body` to be an object");
  }
  if (by !== "offset" && by !== "page") return;
  if (!isNamed && pagination.param === undefined) refuse("pagination.param", NO_PLACE);
  if (config.order === "descending")
    refuse(
      "pagination.by",
      `${by} cannot be used with descending order, because each new item shifts all others to a later page; use links or tokens, or seenSet with unordered`,
    );
  else if (discriminator.isOrdered === true && !restartsWalk)
    refuse(
      "pagination.by",
      `${by} skips items when earlier items are deleted during a poll. Use seenSet, or ascending order with {{cursor}} in the request, which continues after the last item`,
    );
}

const NO_PLACE = "is required when the request does not contain {{page}}";
