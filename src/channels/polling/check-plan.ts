import type { Finding } from "../../lib/errors.ts";
import { parseSequence } from "./discriminators/sequence.ts";
import { parseStart } from "./discriminators/timestamp.ts";
import { isOrdered, type Plan } from "./plan.ts";
import type { PollingSettings } from "./settings-shape.ts";

/** What each setting allows, and all together do not: it would lose items, double them, or never do what was meant. */
export function checkPlan(plan: Plan): readonly Finding[] {
  const checks = [
    ...requestChecks(plan),
    ...discriminatorChecks(plan),
    ...pagingChecks(plan),
    ...boundChecks(plan),
  ];
  return checks.filter(({ is }) => is).map(({ path, message }) => ({ path, message }));
}

interface Check extends Finding {
  /** True where it is so, and must not be. */
  readonly is: boolean;
}

function requestChecks({ request, settings }: Plan): readonly Check[] {
  const { body, method } = settings.request;
  const { by } = settings.discriminator;
  const isConditional = settings.conditional || by === "etag";
  const changes = ["now", "lastPollAt"].find((name) => request.names.has(name));
  return [
    {
      is: body !== undefined && method === "GET",
      path: "request.body",
      message: "a GET has none; set `method` to POST",
    },
    {
      is: isConditional && method === "POST",
      path: by === "etag" ? "request.method" : "conditional",
      message: "only a GET can be answered by: nothing is new",
    },
    {
      is: isConditional && changes !== undefined,
      path: by === "etag" ? "request" : "conditional",
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

function discriminatorChecks({ request, settings }: Plan): readonly Check[] {
  const { discriminator, order, pagination, startAt } = settings;
  const startFlaw = typeof startAt === "object" ? flawOfStart(startAt.value, discriminator) : undefined;
  const isToken = discriminator.by === "token";
  return [
    { is: startFlaw !== undefined, path: "startAt.value", message: startFlaw ?? "" },
    {
      is: isToken && (discriminator.path === undefined) === (discriminator.header === undefined),
      path: "discriminator.path",
      message: "the token comes by `path` or by `header`, one of the two",
    },
    {
      is: isToken && discriminator.as === "value" && !request.names.has("cursor"),
      path: "request",
      message: "tells the server no token: {{cursor}} must stand somewhere in it",
    },
    {
      is: isToken && isHalf(discriminator.expiredOn),
      path: "discriminator.expiredOn.path",
      message: "goes with `equals`, and that with it",
    },
    {
      is: isToken && order === "descending" && pagination !== undefined,
      path: "order",
      message:
        "pages are read to their end before there is a new token, and published as they come: leave it as ascending",
    },
    {
      is: discriminator.by === "sequence" && discriminator.compare === "text" && discriminator.lookBack > 0,
      path: "discriminator.lookBack",
      message: "needs numbers to count by",
    },
    {
      is:
        discriminator.by === "sequence" &&
        order === "unordered" &&
        pagination === undefined &&
        discriminator.lookBack === 0,
      path: "order",
      message:
        "items of one page are put in order anyway; where the server may leave lower numbers out, set `discriminator.lookBack`",
    },
  ];
}

function pagingChecks(plan: Plan): readonly Check[] {
  const { request, restartsWalk, settings } = plan;
  const { discriminator, order, pagination } = settings;
  if (pagination === undefined) return [];
  const { by } = pagination;
  const counts = by === "offset" || by === "page";
  const isNamed = request.names.has("page");
  return [
    {
      is: discriminator.by === "etag",
      path: "pagination",
      message: "etag is about one document; seenSet reads pages, and `conditional` asks as etag does",
    },
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
      is: counts && order !== "descending" && isOrdered(settings) && !restartsWalk,
      path: "pagination.by",
      message: `${by} counts items, and passes one over when another before it is deleted meanwhile: {{cursor}} must stand in the request and the order be ascending, so that each page can begin where the last one ended; or use seenSet`,
    },
  ];
}

function boundChecks({ settings }: Plan): readonly Check[] {
  const { retry } = settings;
  return [{ is: retry.maxMs < retry.initialMs, path: "retry.maxMs", message: "is less than `initialMs`" }];
}

function flawOfStart(value: string, discriminator: PollingSettings["discriminator"]): string | undefined {
  switch (discriminator.by) {
    case "timestamp":
      return parseStart(value, discriminator.format) === undefined ? "is no instant" : undefined;
    case "sequence":
      return parseSequence(value, discriminator.compare) === undefined ? "is no whole number" : undefined;
    case "token":
      return discriminator.as === "url" && !/^https?:\/\//i.test(value) ? "is no address of HTTP" : undefined;
    case "seenSet":
    case "etag":
      return "there is no such place where items are in no order: `now` or `earliest`";
    default:
      return discriminator satisfies never;
  }
}

const isHalf = ({
  equals,
  path,
}: {
  readonly path?: string | undefined;
  readonly equals?: unknown;
}): boolean => (path === undefined) !== (equals === undefined);
