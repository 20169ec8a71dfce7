import type { Finding } from "../../../lib/errors.ts";
import { discriminatorOf } from "../discriminators/discriminators.ts";
import type { Plan } from "./plan.ts";

/** Finds settings that are allowed one by one, and together would lose items, double them, or never do as meant. */
export function checkPlan(plan: Plan): readonly Finding[] {
  const { request, settings } = plan;
  const { discriminator, order, pagination, startAt } = settings;
  const checks = [...requestChecks(plan), ...pagingChecks(plan), ...boundChecks(plan)];
  return [
    ...checks.filter(({ is }) => is).map(({ path, message }) => ({ path, message })),
    ...discriminatorOf(discriminator.by).check(discriminator, {
      startValue: typeof startAt === "object" ? startAt.value : undefined,
      order,
      isPaged: pagination !== undefined,
      placeholders: request.names,
    }),
  ];
}

interface Check extends Finding {
  /** True where it is so, and must not be. */
  readonly is: boolean;
}

function requestChecks({ discriminator, request, settings }: Plan): readonly Check[] {
  const { body, method } = settings.request;
  const isAlways = discriminator.isConditional === true;
  const isConditional = settings.conditional || isAlways;
  const changes = ["now", "lastPollAt"].find((name) => request.names.has(name));
  return [
    {
      is: body !== undefined && method === "GET",
      path: "request.body",
      message: "a GET has none; set `method` to POST",
    },
    {
      is: isConditional && method === "POST",
      path: isAlways ? "request.method" : "conditional",
      message: "only a GET can be answered by: nothing is new",
    },
    {
      is: isConditional && changes !== undefined,
      path: isAlways ? "request" : "conditional",
      message: `cannot be answered by 304 where {{${changes}}} makes each request another one`,
    },
    {
      is: isHalf(settings.successOn),
      path: "successOn.path",
      message: "goes with `equals`, and that with it",
    },
    {
      is: settings.decode === "ndjson" && settings.itemsPath !== undefined,
      path: "itemsPath",
      message: "has no meaning where each line is an item",
    },
  ];
}

function pagingChecks(plan: Plan): readonly Check[] {
  const { discriminator, request, restartsWalk, settings } = plan;
  const { order, pagination } = settings;
  if (pagination === undefined) return [];
  const { by } = pagination;
  const counts = by === "offset" || by === "page";
  const isNamed = request.names.has("page");
  return [
    {
      is: counts && !isNamed && pagination.param === undefined,
      path: "pagination.param",
      message: "is needed where {{page}} stands nowhere in the request",
    },
    {
      is: by === "cursorToken" && !isNamed && pagination.name === undefined,
      path: "pagination.name",
      message: "is needed where {{page}} stands nowhere in the request",
    },
    {
      is: by === "cursorToken" && pagination.in === "body" && typeof settings.request.body !== "object",
      path: "pagination.in",
      message: "needs `request.body` to be an object",
    },
    {
      is: counts && order === "descending",
      path: "pagination.by",
      message: `${by} counts from the newest item, and each new one shifts all others to another page; use a link or a token, or the order unordered with seenSet`,
    },
    {
      is: counts && order !== "descending" && discriminator.isOrdered === true && !restartsWalk,
      path: "pagination.by",
      message: `${by} counts items, and passes one over when another before it is deleted meanwhile: {{cursor}} must stand in the request and the order be ascending, so that each page can begin where the last one ended; or use seenSet`,
    },
  ];
}

function boundChecks({ settings }: Plan): readonly Check[] {
  const { retry } = settings;
  return [{ is: retry.maxMs < retry.initialMs, path: "retry.maxMs", message: "is less than `initialMs`" }];
}

const isHalf = ({
  equals,
  path,
}: {
  readonly path?: string | undefined;
  readonly equals?: unknown;
}): boolean => (path === undefined) !== (equals === undefined);
