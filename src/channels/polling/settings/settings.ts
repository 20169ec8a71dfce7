import { type Refuse, refuseIn } from "../../../event/setting-fields.ts";
import { getDiscriminator } from "../discriminators/discriminators.ts";
import { compilePlan, type Plan } from "./plan.ts";
import { pollingObject } from "./settings-shape.ts";

/** The `config` of a polling channel. Also rejects combinations of settings that are only valid separately. */
export const pollingSettings = pollingObject
  .superRefine((settings, context) => {
    const refuse = refuseIn(context);
    const plan = compilePlan(settings);
    if (plan.ok) checkPlan(plan.value, refuse);
    else for (const { path, message } of plan.error) refuse(path, message);
  })
  .describe("Inlet calls an address at an interval and finds out what is new.");

/** Rejects combinations of settings that would lose or duplicate items or have no effect. */
function checkPlan(plan: Plan, refuse: Refuse): void {
  const { request, settings } = plan;
  const { conditional, decode, discriminator, itemsPath, order, pagination, retry, startAt, successOn } =
    settings;
  const { body, method } = settings.request;
  const isAlways = plan.discriminator.isConditional === true;
  const isConditional = conditional || isAlways;
  const changes = ["now", "lastPollAt"].find((name) => request.names.has(name));
  if (body !== undefined && method === "GET") refuse("request.body", "a GET has none; set `method` to POST");
  if (isConditional && method === "POST")
    refuse(isAlways ? "request.method" : "conditional", "only a GET can be answered by: nothing is new");
  if (isConditional && changes !== undefined)
    refuse(
      isAlways ? "request" : "conditional",
      `cannot be answered by 304 where {{${changes}}} makes each request another one`,
    );
  if ((successOn.path === undefined) !== (successOn.equals === undefined))
    refuse("successOn.path", "goes with `equals`, and that with it");
  if (decode === "ndjson" && itemsPath !== undefined)
    refuse("itemsPath", "has no meaning where each line is an item");
  if (pagination !== undefined) checkPagination(plan, pagination, refuse);
  if (retry.maxMs < retry.initialMs) refuse("retry.maxMs", "is less than `initialMs`");
  const startValue = typeof startAt === "object" ? startAt.value : undefined;
  const rest = { startValue, order, isPaged: pagination !== undefined, placeholders: request.names };
  getDiscriminator(discriminator.by).check(discriminator, rest, refuse);
}

function checkPagination(
  { discriminator, request, restartsWalk, settings }: Plan,
  pagination: NonNullable<Plan["settings"]["pagination"]>,
  refuse: Refuse,
): void {
  const { by } = pagination;
  const isNamed = request.names.has("page");
  if (by === "cursorToken") {
    if (!isNamed && pagination.name === undefined) refuse("pagination.name", NO_PLACE);
    if (pagination.in === "body" && typeof settings.request.body !== "object")
      refuse("pagination.in", "needs `request.body` to be an object");
  }
  if (by !== "offset" && by !== "page") return;
  if (!isNamed && pagination.param === undefined) refuse("pagination.param", NO_PLACE);
  if (settings.order === "descending")
    refuse(
      "pagination.by",
      `${by} counts from the newest item, and each new one shifts all others to another page; use a link or a token, or the order unordered with seenSet`,
    );
  else if (discriminator.isOrdered === true && !restartsWalk)
    refuse(
      "pagination.by",
      `${by} counts items, and passes one over when another before it is deleted meanwhile: {{cursor}} must stand in the request and the order be ascending, so that each page can begin where the last one ended; or use seenSet`,
    );
}

const NO_PLACE = "is needed where {{page}} stands nowhere in the request";
